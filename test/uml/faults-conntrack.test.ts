// A full connection tracker, in every mode. Its size belongs to the machine, so this is for a machine of its own.

import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openTcp, tcpProbe } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { FaultRig } from '../faults/fault-rig.ts'
import { iptablesNft, ipvs, nftables, userspace } from '../faults/modes.ts'
import { sampleObjects, steadyTargets } from '../faults/samples.ts'

const SIZE = 'net.netfilter.nf_conntrack_max'

/** In the first network namespace, where alone it can be set. */
function sysctl(...args: readonly string[]): string {
  return execFileSync('nsenter', ['--net=/proc/1/ns/net', 'sysctl', ...args], { encoding: 'utf8' }).trim()
}

const before = process.env['UML'] === undefined ? '' : sysctl('-n', SIZE)
afterEach(() => void sysctl('-w', `${SIZE}=${before}`))

describe.skipIf(before === '')('a full connection tracker', () => {
  test.for([nftables, iptablesNft, ipvs, userspace])('$label', async (mode) => {
    await using faulty = await FaultRig.open(mode, sampleObjects)
    await faulty.start()
    await faulty.rig.settled()
    const rules = await faulty.steadyRules()
    const pod = faulty.rig.network.sources.localPod
    const { conversation } = await openTcp(pod, steadyTargets.tcp)
    sysctl('-w', `${SIZE}=1`)
    // No new client gets in; a connection that is in stays, and changes are followed.
    expect((await tcpProbe(pod, steadyTargets.tcp, { timeoutMs: 400 })).kind).not.toBe('answered')
    const web = aService({ families: [4, 6] })
    const change = [web, ...([4, 6] as const).map((family) => aSlice(web, ['localB'], { family }))]
    faulty.rig.cluster.put(...change)
    await sleep(1000)
    expect((await conversation.say('still there?')).kind).toBe('answered')
    faulty.expectAlive()
    sysctl('-w', `${SIZE}=${before}`)
    await eventually(
      'the change is served',
      async () => {
        const { kind } = await tcpProbe(pod, { address: web.spec.clusterIP, port: 80 }, { timeoutMs: 100 * patience() })
        return kind === 'answered' ? undefined : kind
      },
      { withinMs: 10_000 },
    )
    expect((await conversation.say('still there?')).kind).toBe('answered')
    conversation.close()
    faulty.rig.cluster.remove(...change)
    await faulty.rulesBecome(rules, 'the rules are what they were')
    faulty.expectAlive()
    expect((await faulty.proxy.health())?.status).toBe(200)
  })
})
