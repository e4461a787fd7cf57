// From kube-proxy to this program and back, on the kernel of this machine. The ipvs mode: test/uml/swap.test.ts.

import { describe, expect, test } from 'vitest'
import { proxyFlags, ProxyProcess } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { startSwapClients } from '../support/swap/clients.ts'
import { kubeProxyProgram, startKubeProxy } from '../support/swap/kube-proxy.ts'
import { swapObjects } from '../support/swap/objects.ts'
import { testSwap } from './swap.suite.ts'
import { hasSynced } from './upgrade.suite.ts'

testSwap([
  { theirs: 'nftables', ours: ['nftables'] },
  { theirs: 'iptables', ours: ['iptables'] },
  { theirs: 'iptables', ours: ['nftables', 'iptables'] },
  { theirs: 'nftables', ours: ['iptables', 'nftables'] },
])

// Two DaemonSets do not wait for each other: this one may start before kube-proxy has ended.
describe.skipIf(kubeProxyProgram === undefined)('kube-proxy still runs (needs GO_KUBE_PROXY)', () => {
  test.for(['nftables', 'iptables'] as const)('%s mode: no connection is lost', async (mode) => {
    await using rig = await openRig()
    rig.cluster.put(...swapObjects)
    const theirs = await startKubeProxy(rig, mode)
    await using clients = await startSwapClients(rig.network)
    const flags = proxyFlags({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig, args: ['-v=2'] })
    await using ours = new ProxyProcess(rig.network.node, flags)
    await hasSynced(ours)
    await clients.more()
    await theirs.stop()
    await clients.more()
    await ours.ready()
    await rig.settled()
    await clients.more()
    for (const { losses } of await clients.stop()) expect(losses).toEqual([])
  })
})
