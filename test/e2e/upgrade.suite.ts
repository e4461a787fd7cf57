// docs/guides/upgrade.md: another version takes over from the one that runs, with clients that never stop.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ModeName } from '../conformance/modes.ts'
import { eventually } from '../support/eventually.ts'
import { otherVersion } from '../support/other-version.ts'
import { proxyFlags, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { startSwapClients } from '../support/swap/clients.ts'
import { swapObjects } from '../support/swap/objects.ts'
import { compareRules, readRules } from '../support/swap/rules.ts'

/** For a mode in which the kernel carries connections. */
export function testUpgrade(mode: ModeName): void {
  describe(`an upgrade in ${mode} mode`, () => {
    let rig: Rig
    let command: readonly string[]
    beforeAll(async () => {
      rig = await openRig()
      rig.cluster.put(...swapObjects)
      command = otherVersion(rig.cluster.folder)
    })
    afterAll(() => rig[Symbol.asyncDispose]())

    const options = () => ({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig, args: ['-v=2'] })
    const rules = () => readRules(rig.network.node).filter((line) => !/default\/svc-\d+|10\.5\.0\.|fd05::/.test(line))

    test('the new process after the old one: no connection is lost, and the rules are the same', async () => {
      await using old = await startProxy(options())
      await rig.settled()
      const before = rules()
      await using clients = await startSwapClients(rig.network)
      await old.stop('SIGTERM')
      await clients.more()
      await using next = await startProxy({ ...options(), command })
      expect(next.log()).not.toContain(versionOf(old))
      await rig.settled()
      await clients.more()
      for (const { losses } of await clients.stop()) expect(losses).toEqual([])
      expect(compareRules(before, rules())).toEqual({ gone: [], added: [] })
    })

    test('the new process before the old one ends: the same', async () => {
      await using old = await startProxy(options())
      await rig.settled()
      const before = rules()
      await using clients = await startSwapClients(rig.network)
      await using next = new ProxyProcess(rig.network.node, proxyFlags(options()), { command })
      await hasSynced(next)
      await clients.more()
      await old.stop('SIGTERM')
      await clients.more()
      await next.ready()
      await rig.settled()
      for (const { losses } of await clients.stop()) expect(losses).toEqual([])
      expect(compareRules(before, rules())).toEqual({ gone: [], added: [] })
    })
  })
}

export function versionOf(proxy: ProxyProcess): string {
  const [, version] = /"Version info" version="([^"]+)"/.exec(proxy.log()) ?? []
  expect(version).toBeDefined()
  return version!
}

/** Its health port is the old one's until that ends: the log tells. */
export function hasSynced(proxy: ProxyProcess): Promise<void> {
  return eventually(
    'the new process has programmed both families',
    () => {
      if (proxy.ended !== undefined) return { fatal: proxy.logTail() }
      const done = ['IPv4', 'IPv6'].filter((family) => proxy.log().includes(`complete" ipFamily="${family}"`))
      return done.length === 2 ? undefined : `only ${done.join()}\n${proxy.logTail()}`
    },
    { withinMs: 20_000 },
  )
}
