import { describe, expect, test } from 'vitest'
import { formatSandboxHelp } from './sandbox-help.ts'
import { parseSandboxArguments, sandboxFlags } from './sandbox-flags.ts'

const start = {
  verb: 'start',
  name: undefined,
  nodes: 2,
  mode: 'nftables',
  stack: 'IPv4',
  content: 'example',
  life: 'foreground',
  proxyFlags: [],
}

describe('parseSandboxArguments()', () => {
  test.each([
    [[], start],
    [['up'], start],
    [['--nodes', '3', '--dual-stack'], { ...start, nodes: 3, stack: 'dual' }],
    [['--nodes=3', '--dual-stack=true', '--empty=false'], { ...start, nodes: 3, stack: 'dual' }],
    [['-d', '--empty', '--name', 'x'], { ...start, life: 'detached', content: 'empty', name: 'x' }],
    [['--', '--masquerade-all', '-v=4'], { ...start, proxyFlags: ['--masquerade-all', '-v=4'] }],
    [
      ['exec', 'node-1', '--', 'ls', '-l', '--', 'x'],
      { verb: 'exec', name: undefined, place: 'node-1', command: ['ls', '-l', '--', 'x'] },
    ],
    [['--name', 'x', 'exec', 'pod'], { verb: 'exec', name: 'x', place: 'pod', command: [] }],
    [['exec', 'node-1', 'hostname'], { verb: 'exec', name: undefined, place: 'node-1', command: ['hostname'] }],
    [['status', '-o', 'json'], { verb: 'status', name: undefined, output: 'json' }],
    [['down', '--name=x'], { verb: 'down', name: 'x' }],
    [['api-server', 'away'], { verb: 'api-server', name: undefined, where: 'away' }],
    [['mode', 'node-1', 'iptables'], { verb: 'mode', name: undefined, node: 'node-1', mode: 'iptables' }],
    [['kubeconfig'], { verb: 'kubeconfig', name: undefined }],
    [['down', '--help'], { verb: 'help' }],
    [['help'], { verb: 'help' }],
  ])('%j', (argv, command) => {
    expect(parseSandboxArguments(argv)).toEqual(command)
  })

  test.each([
    [['--nodes=x'], '--nodes must be from 1 to 100, not "x"'],
    [['--nodes=101'], '--nodes must be from 1 to 100, not "101"'],
    [['--masquerade-all'], 'unknown flag --masquerade-all; flags of the proxies follow a --'],
    [['-x'], 'unknown flag -x; flags of the proxies follow a --'],
    [['status', '-o', 'yaml'], '--output must be json, not "yaml"'],
    [['status', 'x'], 'sandbox status takes no x'],
    [['api-server', 'off'], 'sandbox api-server away, sandbox api-server back'],
    [['mode', 'node-1'], 'sandbox mode needs a node and a mode'],
    [['mode', 'node-1', 'x'], 'the mode must be one of'],
    [['exec', '--empty', 'x'], '--empty means nothing for sandbox exec'],
  ])('%j is refused', (argv, reason) => {
    expect(() => parseSandboxArguments(argv)).toThrow(reason)
  })
})

test('formatSandboxHelp() tells of every flag', () => {
  for (const name of Object.keys(sandboxFlags)) expect(formatSandboxHelp()).toContain(`  --${name}`)
})
