import { expect, test } from 'vitest'
import { type AskingCommand, askedFrom, withoutKubeconfig } from './sandbox-ask.ts'

const node = (name: string, address: string) => ({
  name,
  addresses: [address],
  podRanges: [],
  mode: 'nftables',
  proxyPid: 1,
  restarts: 0,
  health: 'ok',
})
const status = {
  nodes: [node('node-1', '172.30.0.11'), node('node-2', '172.30.0.12')],
  pods: [{ name: 'b1', namespace: 'shop', node: 'node-2', addresses: ['10.244.2.3', 'fd00::3'] }],
}

test.each<[AskingCommand, readonly string[], string, readonly string[]]>([
  ['top', [], 'node-1', []],
  ['explain', ['default/web'], 'node-1', ['default/web']],
  ['explain', ['-o', 'json', 'shop/b1', 'default/web'], 'node-2', ['-o', 'json', '10.244.2.3', 'default/web']],
  ['explain', ['172.30.0.12', 'default/web'], 'node-2', ['172.30.0.12', 'default/web']],
  ['explain', ['--via', 'nodePort', 'default/web'], 'node-1', ['--via', 'nodePort', 'default/web']],
  ['doctor', ['default/web', '--from', 'shop/b1'], 'node-2', ['default/web', '--from', '10.244.2.3']],
  ['doctor', ['default/web', '--from=shop/b1'], 'node-2', ['default/web', '--from=10.244.2.3']],
  ['doctor', ['default/web', '--from', 'outside'], 'node-1', ['default/web', '--from', 'outside']],
])('askedFrom(%s %j) is %s', (command, argv, wanted, args) => {
  expect(askedFrom(command, argv, status)).toEqual({ node: wanted, args })
})

test.each<[readonly string[], readonly string[], boolean]>([
  [['default/web'], ['default/web'], false],
  [['default/web', '--kubeconfig', '/run/a/kubeconfig'], ['default/web'], true],
  [['--kubeconfig=/run/a/kubeconfig', 'default/web'], ['default/web'], true],
  [['--kubeconfig', 'admin.conf', 'default/web'], ['--kubeconfig', 'admin.conf', 'default/web'], false],
])('the kubeconfig of a sandbox names the sandbox: %j', (argv, rest, isFound) => {
  const sandbox = { kubeconfig: '/run/a/kubeconfig' }
  expect(withoutKubeconfig(argv, [sandbox])).toEqual({ argv: rest, folder: isFound ? sandbox : undefined })
})
