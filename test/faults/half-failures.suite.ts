// What follows the rules fails, one at a time: the sync counts, the rest is done, and it is made good by itself once the fault is
// gone: without another change, and without another comparison.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { node as here } from '../support/addresses.ts'
import { aName, aService, aSlice, type ApiService } from '../support/builders.ts'
import { Cgroup, whyNoCgroup } from '../support/cgroup.ts'
import { eventually } from '../support/eventually.ts'
import { aShortWhile, httpGet, openUdp, tcpProbe, udpProbe } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { sampleObjects } from './samples.ts'
import type { Errno, FaultyCall } from './shim.ts'

const HEALTH_PORT = 31_999
/** A change is made good within the longest pause that these failures lead to. */
const MENDED_MS = 15_000

interface Half {
  readonly subscriber: string
  readonly call: FaultyCall
  /** What there is to follow. */
  readonly change: () => void | Promise<void>
  /** Undefined when it was followed. */
  readonly missing: () => Promise<string | undefined>
}

export function testHalfFailures(mode: FaultyMode, errnos: readonly Errno[]): void {
  const isKernelMode = mode.carriedBy === 'kernel'
  const hasTable = isKernelMode && mode.label !== 'ipvs'
  const balancesSockets = hasTable && whyNoCgroup() === undefined

  describe(`${mode.label}: what follows the rules fails`, () => {
    let faulty: FaultRig
    let cgroup: Cgroup | undefined

    beforeAll(async () => {
      cgroup = balancesSockets ? new Cgroup(`kube-proxy-ts-half-${process.pid}`) : undefined
      const args = cgroup === undefined ? [] : [`--socket-balancing=${cgroup.folder}`]
      faulty = await FaultRig.open(
        { ...mode, args: [...mode.args, '--connect-retry=annotated', ...args] },
        sampleObjects,
        // No sync comes by itself.
        { syncPeriod: '1h' },
      )
      await faulty.start()
      await faulty.rig.settled()
    })
    afterAll(async () => {
      await faulty[Symbol.asyncDispose]()
      cgroup?.[Symbol.dispose]()
    })
    beforeEach(() => faulty.shim.heal())

    const pod = () => faulty.rig.network.sources.localPod
    /** Of IPv4. */
    const metric = async (name: string, subscriber = ''): Promise<number> => {
      const page = (await faulty.proxy.ask('/metrics'))?.body ?? ''
      const isMeant = (line: string) =>
        line.startsWith(`${name}{`) && line.includes('IPv4') && line.includes(subscriber)
      return Number(page.split('\n').find(isMeant)?.split(' ').at(-1) ?? 0)
    }
    const failures = (subscriber: string) => metric('kubeproxyts_subscriber_failures_total', `"${subscriber}"`)
    const behind = (subscriber: string) => metric('kubeproxyts_subscriber_behind', `"${subscriber}"`)
    const logged = (pattern: RegExp) => faulty.proxy.log().match(pattern)?.length ?? 0
    const syncs = () => logged(/"SyncProxyRules complete" ipFamily="IPv4"/g)

    /** Another service comes, is served, and goes; and no sync is left to come. */
    const rulesFollow = async () => {
      await faulty.rig.settled(30_000)
      let before = -1
      await eventually(
        'the syncs are over',
        () => {
          const isOver = syncs() === before
          before = syncs()
          return isOver ? undefined : 'there was one'
        },
        { everyMs: 200 * patience() },
      )
    }
    const expectHealth = async () => {
      for (const path of ['/healthz', '/livez'] as const) expect((await faulty.proxy.health(path))?.status).toBe(200)
    }

    async function halfFail({ subscriber, call, change, missing }: Half, errno: Errno): Promise<void> {
      const { shim } = faulty
      const [before, failed] = [await failures(subscriber), logged(/"Sync failed"/g)]
      shim.fail(call, errno)
      await change()
      await eventually(`${subscriber} fails`, async () =>
        (await failures(subscriber)) > before ? undefined : `not yet, of ${shim.hits(call)} calls that failed`,
      )
      expect(await behind(subscriber)).toBe(1)
      await rulesFollow()
      await expectHealth()
      const done = syncs()
      shim.heal()
      await eventually(`${subscriber} is made good`, missing, { withinMs: MENDED_MS })
      await eventually('it says so', async () => ((await behind(subscriber)) === 0 ? undefined : 'not yet'), {
        withinMs: MENDED_MS,
      })
      expect([syncs(), logged(/"Sync failed"/g)]).toEqual([done, failed])
      await expectHealth()
      faulty.expectAlive()
    }

    const answeredBy = async (service: ApiService, host: string) => {
      const answer = await tcpProbe(pod(), { address: service.spec.clusterIP, port: 80 }, aShortWhile())
      const got = answer.kind === 'answered' ? answer.greeting.host : answer.kind
      return got === host ? undefined : `${got} answers`
    }

    test.each(errnos)('UDP flows, with %s', async (errno) => {
      const dns = aService({ ports: [{ protocol: 'UDP' }] })
      const slice = aSlice(dns, ['localB'])
      const { cluster } = faulty.rig
      const to = { address: dns.spec.clusterIP, port: 80 }
      cluster.put(dns, slice)
      await eventually('it is served', async () => {
        const { kind } = await udpProbe(pod(), to, aShortWhile())
        return kind === 'answered' ? undefined : kind
      })
      const flow = await openUdp(pod(), to)
      const host = async () => {
        const answer = await flow.say('who?', aShortWhile().timeoutMs)
        return answer.kind === 'answered' ? answer.greeting.host : answer.kind
      }
      expect(await host()).toBe('localB')
      const deleted = () => metric('kubeproxy_conntrack_reconciler_deleted_entries_total')
      const before = await deleted()
      await halfFail(
        {
          subscriber: 'udp_flows',
          call: 'conntrack send',
          // In userspace mode the flow ends at the proxy, which knows by itself where to go on to.
          change: isKernelMode
            ? () => cluster.put({ ...slice, endpoints: aSlice(dns, ['localC']).endpoints })
            : () => cluster.remove(dns, slice),
          missing: async () => {
            if (!isKernelMode) return (await deleted()) > before ? undefined : 'no flow was deleted'
            const now = await host()
            return now === 'localC' ? undefined : `the flow goes to ${now}`
          },
        },
        errno,
      )
      flow.close()
      cluster.remove(dns, slice)
    })

    test('a health check port that another program has', async () => {
      const { cluster, network } = faulty.rig
      const script = `require('net').createServer().listen(${HEALTH_PORT}, '0.0.0.0', () => console.log('there'))`
      const other = network.node.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
      await new Promise((resolve) => other.stdout!.once('data', resolve))
      const local = aService({
        type: 'LoadBalancer',
        ingress: [{ ip: '10.4.200.1' }],
        spec: { externalTrafficPolicy: 'Local', healthCheckNodePort: HEALTH_PORT },
      })
      const before = await failures('health_ports')
      cluster.put(local, aSlice(local, ['localB']))
      await eventually('it is refused', async () => ((await failures('health_ports')) > before ? undefined : 'not yet'))
      await eventually('the service is served', () => answeredBy(local, 'localB'))
      await rulesFollow()
      await expectHealth()
      const done = syncs()
      other.kill('SIGKILL')
      await eventually(
        'the port answers',
        async () => {
          const answer = await httpGet(network.node, { address: here.ip[4], port: HEALTH_PORT })
          return answer?.status === 200 ? undefined : `${answer?.status}`
        },
        { withinMs: MENDED_MS },
      )
      expect(syncs()).toBe(done)
      cluster.remove(local, aSlice(local, ['localB']))
    })

    test.each(mode.mode === 'nftables' ? errnos : [])('clients of session affinity, with %s', async (errno) => {
      const sticky = aService({ spec: { sessionAffinity: 'ClientIP' } })
      const slice = aSlice(sticky, ['localB'])
      const { cluster } = faulty.rig
      cluster.put(sticky, slice)
      await eventually('it is served', () => answeredBy(sticky, 'localB'))
      await halfFail(
        {
          subscriber: 'affinity',
          call: 'affinity send',
          change: () => cluster.put({ ...slice, endpoints: aSlice(sticky, ['localC']).endpoints }),
          missing: () => answeredBy(sticky, 'localC'),
        },
        errno,
      )
      cluster.remove(sticky, slice)
    })

    test.each(isKernelMode ? errnos : [])('the table of retries, with %s', async (errno) => {
      const annotations = { 'service.kube-proxy-ts.io/connect-retry': 'on' }
      const retried = aService()
      retried.metadata.annotations = annotations
      const slice = aSlice(retried, ['localB', 'localC'])
      const { cluster, network } = faulty.rig
      const listed = () => network.node.run('nft', ['list', 'ruleset'])
      const isCovered = () => {
        const table = /table ip kube-proxy-retry \{[^]*?\n\}/.exec(listed())?.[0] ?? ''
        return Promise.resolve(table.includes(retried.spec.clusterIP) ? undefined : 'it is not in the table')
      }
      await halfFail(
        {
          subscriber: 'connect_retry',
          call: 'retry table send',
          change: () => cluster.put(retried, slice),
          missing: isCovered,
        },
        errno,
      )
      cluster.remove(retried, slice)
    })

    test.each(balancesSockets ? errnos : [])('the maps of connect(), with %s', async (errno) => {
      const chosen = aService({ name: aName('chosen') })
      const slice = aSlice(chosen, ['localB'])
      const { cluster } = faulty.rig
      const frontends = () => metric('kubeproxyts_socket_balancing_frontends')
      await eventually('some are chosen', async () => ((await frontends()) > 0 ? undefined : 'none'), {
        withinMs: MENDED_MS,
      })
      await halfFail(
        {
          subscriber: 'socket_balancing',
          call: 'bpf',
          change: () => cluster.put(chosen, slice),
          missing: async () => ((await frontends()) > 0 ? undefined : 'none is chosen'),
        },
        errno,
      )
      cluster.remove(chosen, slice)
    })
  })
}
