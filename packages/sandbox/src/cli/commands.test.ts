import { describe, expect, test, vi } from 'vitest'
import { chooseCommand, formatGroupHelp, parseCommand } from '../../../../src/lib/command.ts'
import { sandbox } from './commands.ts'
import { runSandboxApiServer, runSandboxMode } from './sandbox-change.ts'
import { runSandboxDown } from './sandbox-down.ts'
import { runSandboxExec } from './sandbox-exec.ts'
import { runSandboxKubeconfig } from './sandbox-kubeconfig.ts'
import { runSandboxStart } from './sandbox-start.ts'
import { runSandboxStatus } from './sandbox-status.ts'

vi.mock('./sandbox-change.ts', () => ({ runSandboxApiServer: vi.fn(), runSandboxMode: vi.fn() }))
vi.mock('./sandbox-down.ts', () => ({ runSandboxDown: vi.fn() }))
vi.mock('./sandbox-exec.ts', () => ({ runSandboxExec: vi.fn() }))
vi.mock('./sandbox-kubeconfig.ts', () => ({ runSandboxKubeconfig: vi.fn() }))
vi.mock('./sandbox-start.ts', () => ({ runSandboxStart: vi.fn() }))
vi.mock('./sandbox-status.ts', () => ({ runSandboxStatus: vi.fn() }))

const start = {
  name: undefined,
  nodes: 2,
  mode: 'nftables',
  stack: 'IPv4',
  content: 'example',
  life: 'foreground',
  proxyFlags: [],
}

function parse(argv: readonly string[]) {
  const { command, argv: own } = chooseCommand(sandbox, argv)
  return { command, ...parseCommand(command, own) }
}

describe('the commands of kube-proxy sandbox', () => {
  test.each([
    [[], runSandboxStart, start],
    [['up'], runSandboxStart, start],
    [['--nodes', '3', '--dual-stack'], runSandboxStart, { ...start, nodes: 3, stack: 'dual' }],
    [['--nodes=3', '--dual-stack=true', '--empty=false'], runSandboxStart, { ...start, nodes: 3, stack: 'dual' }],
    [['-d', '--empty', '--name', 'x'], runSandboxStart, { ...start, life: 'detached', content: 'empty', name: 'x' }],
    [['--', '--masquerade-all', '-v=4'], runSandboxStart, { ...start, proxyFlags: ['--masquerade-all', '-v=4'] }],
    [
      ['exec', 'node-1', '--', 'ls', '-l', '--', 'x'],
      runSandboxExec,
      { name: undefined, place: 'node-1', command: ['ls', '-l', '--', 'x'] },
    ],
    [['--name', 'x', 'exec', 'pod'], runSandboxExec, { name: 'x', place: 'pod', command: [] }],
    [['exec', 'node-1', 'hostname'], runSandboxExec, { name: undefined, place: 'node-1', command: ['hostname'] }],
    [['status', '-o', 'json'], runSandboxStatus, { name: undefined, output: 'json' }],
    [['down', '--name=x'], runSandboxDown, { name: 'x' }],
    [['api-server', 'away'], runSandboxApiServer, { name: undefined, where: 'away' }],
    [['mode', 'node-1', 'iptables'], runSandboxMode, { name: undefined, node: 'node-1', mode: 'iptables' }],
    [['kubeconfig'], runSandboxKubeconfig, { name: undefined }],
  ])('%j', async (argv, run, wanted) => {
    const { command, values, words, errors } = parse(argv)
    expect(errors).toEqual([])
    await command.run({ values, words, given: new Map(), argv })
    const [got] = vi.mocked(run as (...args: never) => unknown).mock.lastCall as unknown as unknown[]
    expect(got).toEqual(wanted)
  })

  test.each([[['down', '--help']], [['help']], [['-h']]])('%j asks for the help', (argv) => {
    expect(parse(argv).isHelp).toBe(true)
  })

  test.each([
    [['--nodes=x'], '--nodes must be from 1 to 100, not "x"'],
    [['--nodes=101'], '--nodes must be from 1 to 100, not "101"'],
    [['--masquerade-all'], 'unknown option --masquerade-all; sandbox up takes --nodes, .*, -- FLAGS OF THE PROXIES'],
    [['-x'], 'unknown option -x; sandbox up takes --nodes'],
    [['status', '-o', 'yaml'], '--output must be one of text, json, not "yaml"'],
    [['status', 'x'], 'sandbox status takes no arguments, but was given "x"'],
    [['api-server', 'off'], 'sandbox api-server takes away|back, but was given "off"'],
    [['mode', 'node-1'], 'sandbox mode needs iptables|ipvs|nftables|userspace'],
    [['mode', 'node-1', 'x'], 'but was given "x"'],
    [['exec', '--empty', 'x'], 'unknown option --empty; sandbox exec takes --name'],
  ])('%j is refused', (argv, reason) => {
    expect(parse(argv).errors).toEqual([expect.stringMatching(new RegExp(reason.replaceAll('|', '\\|')))])
  })
})

test('the help has every option', () => {
  for (const { options } of sandbox.commands)
    for (const name of Object.keys(options)) expect(formatGroupHelp(sandbox)).toContain(`--${name}`)
})
