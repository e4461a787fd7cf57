// In a pod, the proxy is not in the machine's first pid namespace: the kernel names processes by numbers that mean nothing there.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { proxyCommand, startProxy } from '../support/proxy-process.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess
const command = process.env['PROXY_COMMAND']

beforeEach(async () => {
  rig = await openRig()
  const prefix = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
  process.env['PROXY_COMMAND'] = [...prefix, ...proxyCommand()].join(' ')
})
afterEach(async () => {
  if (command === undefined) delete process.env['PROXY_COMMAND']
  else process.env['PROXY_COMMAND'] = command
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test('what another program flushes while services come and go is there again, and our own changes are not healed', async () => {
  const { node } = rig.network
  const { kubeconfig } = rig.cluster
  // The next look at everything would come in an hour.
  const args = ['--iptables-min-sync-period=10ms', '--iptables-sync-period=1h']
  proxy = await startProxy({ netns: node, mode: 'iptables', kubeconfig, args })
  await rig.settled()
  const web = aService()
  rig.cluster.put(web, aSlice(web, ['localB']))
  await rig.settled()
  expect(proxy.log()).not.toContain('Restored rules')

  const over = new AbortController()
  const churn = (async () => {
    const other = aService()
    while (!over.signal.aborted) {
      rig.cluster.put(other, aSlice(other, ['localB']))
      await new Promise((resolve) => setTimeout(resolve, 100))
      rig.cluster.remove(other)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })()
  try {
    // In the filter table, which service churn does not write: only healing brings it back.
    node.run('iptables-nft', ['-F', 'KUBE-FORWARD'])
    await eventually('the chain is whole again', () => {
      const rules = node.run('iptables-nft', ['-S', 'KUBE-FORWARD'])
      return rules.includes('kubernetes forwarding rules') ? undefined : rules
    })
  } finally {
    over.abort()
    await churn
  }
})
