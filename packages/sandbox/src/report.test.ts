import { expect, test } from 'vitest'
import { formatReport, formatColumns, type Report } from './report.ts'

const report: Report = {
  tookMs: 849,
  mode: 'nftables',
  nodes: [{ name: 'node-1', addresses: ['172.30.0.11', 'fd00:30::11'], podRanges: ['10.244.1.0/24'] }],
  pods: [{ name: 'whoami-8fpqp', node: 'node-1' }],
  services: [
    { name: 'whoami', clusterIPs: ['10.96.1.2'], loadBalancerIPs: ['172.30.0.129'], port: 3000, nodePort: 30000 },
  ],
  kubeconfig: '/run/x/kubeconfig',
  pageUrl: 'http://127.0.0.1:41234/?token=secret',
  command: 'sudo ./bin/kube-proxy',
  machine: 'connected',
  life: 'foreground',
  name: undefined,
  missingTools: [],
}

test('formatReport() says what was made and what to type next', () => {
  expect(formatReport(report)).toBe(`\
A cluster of 1 node in mode nftables, with 1 pod and 1 service, ready in 0.8 s.

node      node-1   172.30.0.11, fd00:30::11   pods 10.244.1.0/24
service   whoami   10.96.1.2:3000             node port 30000      load balancer 172.30.0.129:3000

See it in a browser:
  http://127.0.0.1:41234/?token=secret

Look at it:
  export KUBECONFIG=/run/x/kubeconfig
  kubectl get pods,services -o wide

Ask the service:
  curl http://10.96.1.2:3000                                                   # from this machine; again and again
  curl http://172.30.0.11:30000                                                # through the node port
  curl http://172.30.0.129:3000                                                # through the load balancer
  sudo ./bin/kube-proxy sandbox exec node-1 -- curl -s http://10.96.1.2:3000   # from a node
  kubectl exec whoami-8fpqp -- curl -s http://whoami:3000/client               # from a pod, by name: whom does the server see?
  kubectl scale deployment whoami --replicas=30                                # and ask again

Ask the proxy:
  sudo ./bin/kube-proxy explain whoami   # which rule takes a packet, and why
  sudo ./bin/kube-proxy doctor whoami    # what is wrong, if something is
  sudo ./bin/kube-proxy top              # what goes through, live
  sudo ./bin/kube-proxy flows whoami     # who connects to it, live

Ctrl-C takes everything down.
`)
})

test('formatReport() goes through the namespace that stands for the machine where that is apart', () => {
  const text = formatReport({ ...report, machine: 'apart', name: 'two', life: 'detached' })
  expect(text).toContain('  sudo ./bin/kube-proxy sandbox --name two exec machine -- curl http://172.30.0.11:30000 ')
  expect(text).toMatch(/To take everything down: sudo .\/bin\/kube-proxy sandbox down --name two\n$/)
})

test('formatReport() without an example has nothing to ask', () => {
  const text = formatReport({ ...report, services: [], pods: [] })
  expect(text).toMatch(/^A cluster of 1 node in mode nftables, with 0 pods and 0 services/)
  expect(text).not.toContain('Ask the service')
})

test('formatReport() names tools that are missing', () => {
  const missing = 'There is no curl in PATH: Debian has it in the package curl.'
  expect(formatReport({ ...report, missingTools: [missing] })).toContain(`\n${missing}\n`)
})

test('formatColumns() makes columns as wide as their widest cell, and leaves no space at the end', () => {
  expect(
    formatColumns([
      ['a', 'bb', ''],
      ['ccc', 'd', 'e'],
    ]),
  ).toEqual(['a     bb', 'ccc   d    e'])
})
