// Upgrades on the kernel of this machine. The ipvs mode: test/uml/upgrade.test.ts.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { otherVersion } from '../support/other-version.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import { proxyFlags, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { startSwapClients } from '../support/swap/clients.ts'
import { swapObjects, swapTargets } from '../support/swap/objects.ts'
import { hasSynced, testUpgrade, versionOf } from './upgrade.suite.ts'

testUpgrade('nftables')
testUpgrade('iptables')

let rig: Rig
beforeAll(async () => {
  rig = await openRig()
  rig.cluster.put(...swapObjects)
})
afterAll(() => rig[Symbol.asyncDispose]())

test('in userspace mode the new process takes over, and the old one lets its connections end', async () => {
  const options = {
    netns: rig.network.node,
    mode: 'userspace',
    kubeconfig: rig.cluster.kubeconfig,
    args: ['-v=2'],
  } as const
  await using old = await startProxy(options)
  await rig.settled()
  await using clients = await startSwapClients(rig.network)
  const command = otherVersion(rig.cluster.folder)
  await using next = new ProxyProcess(rig.network.node, proxyFlags(options), { command })
  await hasSynced(next)
  await clients.more()
  expect(old.log()).toContain('has taken over')
  old.signal('SIGTERM')
  await clients.more()
  // New connections, and those that were open: of both, none.
  const losses = (await clients.stop()).flatMap((report) => report.losses)
  expect(losses.filter((loss) => !loss.startsWith('a udp flow'))).toEqual([])
  // A UDP flow goes on with the new process, which chooses its backend again.
  expect(losses.filter((loss) => !/ moved: /.test(loss)).length).toBeLessThan(10)
  expect(await old.exited, old.logTail()).toBe('0')
  await next.ready()
  await rig.settled()
  expect(next.log()).not.toContain(versionOf(old))
  for (const { tcp } of Object.values(swapTargets)) {
    expect(await tcpProbe(rig.network.sources.external, tcp, aShortWhile())).toMatchObject({ kind: 'answered' })
  }
})
