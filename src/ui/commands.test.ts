import { expect, test } from 'vitest'
import { commandFor, dialCommand, explainCommand, type CommandContext } from './commands.ts'
import type { Action } from './protocol.ts'

const terminal = { program: 'sudo ./bin/kube-proxy', sandbox: null, kubeconfig: '/run/x/kubeconfig' }
const context = {
  terminal,
  nodes: [
    { name: 'node-1', mode: 'nftables', proxy: { pid: 42 } },
    { name: 'node-2', mode: 'iptables', proxy: { pid: null } },
  ],
  services: [{ namespace: 'default', name: 'web', clusterIPs: ['10.96.0.7'], ports: [{ name: 'http', port: 80 }] }],
} as unknown as CommandContext

test.each<[Action, string]>([
  [
    { action: 'scale', namespace: 'default', deployment: 'web', replicas: 5 },
    'kubectl scale deployment web --replicas=5',
  ],
  [
    { action: 'scale', namespace: 'shop', deployment: 'web', replicas: 0 },
    'kubectl -n shop scale deployment web --replicas=0',
  ],
  [
    { action: 'fail', namespace: 'default', pod: 'a', how: 'hang' },
    'kubectl annotate pod a sandbox/fail=hang --overwrite',
  ],
  [{ action: 'fail', namespace: 'default', pod: 'a', how: 'none' }, 'kubectl annotate pod a sandbox/fail-'],
  [{ action: 'delete-pod', namespace: 'default', pod: 'a' }, 'kubectl delete pod a'],
  [
    { action: 'policy', namespace: 'default', service: 'web', field: 'externalTrafficPolicy', value: 'Local' },
    `kubectl patch service web -p '{"spec":{"externalTrafficPolicy":"Local"}}'`,
  ],
  [
    { action: 'affinity', namespace: 'default', service: 'web', value: 'ClientIP' },
    `kubectl patch service web -p '{"spec":{"sessionAffinity":"ClientIP"}}'`,
  ],
  [
    { action: 'balance', namespace: 'default', service: 'web', value: 'least-connections' },
    'kubectl annotate service web service.kube-proxy-ts.io/balance=least-connections --overwrite',
  ],
  [
    { action: 'balance', namespace: 'default', service: 'web', value: 'random' },
    'kubectl annotate service web service.kube-proxy-ts.io/balance-',
  ],
  [{ action: 'flush', node: 'node-1' }, 'sudo ./bin/kube-proxy sandbox exec node-1 -- nft flush ruleset'],
  [
    { action: 'flush', node: 'node-2' },
    'sudo ./bin/kube-proxy sandbox exec node-2 -- iptables -t nat -F\nsudo ./bin/kube-proxy sandbox exec node-2 -- iptables -t filter -F',
  ],
  [{ action: 'kill-proxy', node: 'node-1' }, 'sudo kill -KILL 42'],
  [{ action: 'kill-proxy', node: 'node-2' }, 'sudo kill -KILL PID'],
  [{ action: 'mode', node: 'node-1', mode: 'ipvs' }, 'sudo ./bin/kube-proxy sandbox mode node-1 ipvs'],
  [{ action: 'api-server-away' }, 'sudo ./bin/kube-proxy sandbox api-server away'],
  [{ action: 'api-server-back' }, 'sudo ./bin/kube-proxy sandbox api-server back'],
  [
    { action: 'load', from: 'outside', to: 'default/web:http', perSecond: 20 },
    `sudo ./bin/kube-proxy sandbox exec machine -- sh -c 'while sleep 0.05; do curl -s http://10.96.0.7:80; done'`,
  ],
  [{ action: 'load-end' }, 'Ctrl-C'],
])('%j is typed as', (action, command) => {
  expect(commandFor(action, context)).toBe(command)
})

test('another sandbox is named, and odd words are quoted', () => {
  const named = { ...context, terminal: { ...terminal, sandbox: 'two' } }
  expect(commandFor({ action: 'mode', node: 'node-1', mode: 'ipvs' }, named)).toContain('sandbox --name two mode')
  expect(dialCommand(`it's`, '10.0.0.1:80', named)).toContain(`exec 'it'\\''s' -- curl`)
})

test('an explanation has its command, on the node where it is asked', () => {
  const question = { node: 'node-1', from: 'node', to: 'default/web', via: 'nodePort', family: 4, send: true } as const
  expect(explainCommand(question, context)).toBe(
    'sudo ./bin/kube-proxy sandbox exec node-1 -- ./bin/kube-proxy explain --via=nodePort --family=4 --send node default/web',
  )
  const onNode = { terminal: { program: 'kube-proxy', sandbox: null, kubeconfig: null } }
  expect(explainCommand({ from: 'outside', to: 'web' }, onNode)).toBe('kube-proxy explain outside web')
})
