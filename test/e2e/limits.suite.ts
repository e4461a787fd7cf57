// Limits of connections with real ones: who is refused, who is not, and when that ends.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { LIMITS_ANNOTATION } from '../../src/model/limits.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Source } from '../conformance/packet-flow.ts'
import { node } from '../support/addresses.ts'
import { aService, aSlice, type ServiceWish } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { nextProbePort, silentForMs } from '../support/flows.ts'
import { openTcp, openUdp, type Answer, type Target } from '../support/netns/probe.ts'
import { type ProxyProcess, startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

export function testLimits(mode: ModeName): void {
  const reason = whyNotRun(mode)
  if (reason !== undefined) {
    test(`limits in ${mode} mode`, ({ skip }) => skip(reason))
    return
  }
  let rig: Rig
  let proxy: ProxyProcess
  const open: { close(): void }[] = []

  beforeAll(async () => {
    rig = await openRig()
    proxy = await startProxy({
      netns: rig.network.node,
      mode,
      kubeconfig: rig.cluster.kubeconfig,
      args: ['--traffic-metrics=50'],
    })
    await rig.settled()
  })
  afterEach(() => {
    for (const each of open.splice(0)) each.close()
  })
  afterAll(async () => {
    await proxy[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  async function limited(family: 4 | 6, limits: string, wish: ServiceWish = {}) {
    const annotations = { [LIMITS_ANNOTATION]: limits }
    const service = aService({ families: [family], type: 'NodePort', annotations, ...wish })
    const [port] = service.spec.ports
    rig.cluster.put(service, aSlice(service, ['localC', 'remoteA']))
    await rig.settled()
    return {
      name: `${service.metadata.namespace}/${service.metadata.name}`,
      clusterIp: { address: service.spec.clusterIP, port: port!.port },
      nodePort: { address: node.ip[family], port: port!.nodePort! },
      change: async (text: string) => {
        rig.cluster.put({ ...service, metadata: { ...service.metadata, annotations: { [LIMITS_ANNOTATION]: text } } })
        await rig.settled()
      },
    }
  }

  /** `answered`, `refused` or `silent`; what is answered stays open. */
  async function connect(from: Source, to: Target, timeoutMs?: number): Promise<string> {
    const options = { fromPort: nextProbePort(), ...(timeoutMs === undefined ? {} : { timeoutMs }) }
    const { answer, conversation } = await openTcp(rig.network.sources[from], to, options)
    if (answer.kind === 'answered') open.push(conversation)
    else conversation.close()
    return outcomeOf(answer)
  }

  const connectTimes = async (times: number, from: Source, to: Target) => {
    const outcomes: string[] = []
    for (let i = 0; i < times; i++) outcomes.push(await connect(from, to))
    return outcomes
  }

  describe.each([4, 6] as const)('over IPv%d', (family) => {
    test('a client that has as many open as it may is refused; others are not, and it is served again when it closes one', async () => {
      const { clusterIp, nodePort } = await limited(family, '2 per client')
      expect(await connectTimes(4, 'localPod', clusterIp)).toEqual(['answered', 'answered', 'refused', 'refused'])
      expect(await connect('otherLocalPod', clusterIp)).toBe('answered')
      expect(await connectTimes(3, 'external', nodePort)).toEqual(['answered', 'answered', 'refused'])
      open.shift()!.close()
      await eventually('it is served', async () => {
        const outcome = await connect('localPod', clusterIp)
        return outcome === 'answered' ? undefined : outcome
      })
      expect(await connect('localPod', clusterIp)).toBe('refused')
    })

    test('the limit of all clients counts every address', async () => {
      const { clusterIp, nodePort } = await limited(family, '3')
      expect(await connectTimes(2, 'localPod', clusterIp)).toEqual(['answered', 'answered'])
      expect(await connectTimes(2, 'external', nodePort)).toEqual(['answered', 'refused'])
      expect(await connect('otherLocalPod', clusterIp)).toBe('refused')
    })

    test.each(['clusterIp', 'nodePort'] as const)('the node itself has limits at the %s', async (at) => {
      const { [at]: to } = await limited(family, '1 per client')
      expect(await connectTimes(3, 'node', to)).toEqual(['answered', 'refused', 'refused'])
      open.shift()!.close()
      await eventually('it is served', async () => {
        const outcome = await connect('node', to)
        return outcome === 'answered' ? undefined : outcome
      })
    })

    test('what is over a limit may be dropped', async () => {
      const { clusterIp } = await limited(family, '1 per client, drop')
      expect(await connect('localPod', clusterIp)).toBe('answered')
      expect(await connect('localPod', clusterIp, silentForMs)).toBe('silent')
    })

    test('so many new ones per second', async () => {
      const { clusterIp } = await limited(family, '4/s, 2/s per client')
      const burst = (from: Source) => Promise.all(Array.from({ length: 40 }, () => connect(from, clusterIp)))
      const started = performance.now()
      const answers = await burst('localPod')
      const seconds = (performance.now() - started) / 1000
      const served = answers.filter((each) => each === 'answered').length
      expect(served).toBeGreaterThanOrEqual(2)
      expect(served).toBeLessThanOrEqual(2 + Math.ceil(2 * seconds))
      expect(answers.filter((each) => each === 'refused')).toHaveLength(40 - served)
      // The first client has not used up what all have.
      expect(await connect('otherLocalPod', clusterIp)).toBe('answered')
      await eventually('it is served again', async () => {
        const outcome = await connect('localPod', clusterIp)
        return outcome === 'answered' ? undefined : outcome
      })
    })

    test('the annotation comes, changes and goes under open connections', async () => {
      const { clusterIp, change } = await limited(family, 'nonsense')
      expect(await connectTimes(3, 'localPod', clusterIp)).toEqual(['answered', 'answered', 'answered'])
      await change('1 per client')
      expect(await connectTimes(2, 'localPod', clusterIp)).toEqual(['answered', 'refused'])
      await change('keep none')
      expect(await connectTimes(2, 'localPod', clusterIp)).toEqual(['answered', 'answered'])
    })

    test('metrics count what was over', async () => {
      const { name, clusterIp } = await limited(family, '1 per client')
      await connectTimes(4, 'localPod', clusterIp)
      const count = (page: string, metric: string) =>
        Number(
          page
            .split('\n')
            .find((line) => line.startsWith(metric) && line.includes(`service_port="${name}"`))
            ?.split(' ')
            .at(-1) ?? 0,
        )
      if (mode !== 'iptables') {
        const page = (await proxy.ask('/metrics'))?.body ?? ''
        expect(count(page, 'kubeproxyts_over_limit_packets_total')).toBe(3)
      }
      // What the counting table counts, it counts from the next reading on.
      await eventually('they are refused packets', async () => {
        await connect('localPod', clusterIp)
        const page = (await proxy.ask('/metrics'))?.body ?? ''
        return count(page, 'kubeproxyts_traffic_refused_packets_total') > 0 ? undefined : 'none yet'
      })
    })

    test('a flow of UDP is a connection', async () => {
      const { clusterIp } = await limited(family, '1 per client', { ports: [{ protocol: 'UDP' }] })
      const ask = async () => {
        const conversation = await openUdp(rig.network.sources.localPod, clusterIp, { fromPort: nextProbePort() })
        open.push(conversation)
        return { outcome: outcomeOf(await conversation.say('hello', 2000)), conversation }
      }
      const first = await ask()
      expect([first.outcome, (await ask()).outcome]).toEqual(['answered', 'refused'])
      expect(outcomeOf(await first.conversation.say('again', 2000))).toBe('answered')
    })
  })
}

function outcomeOf(answer: Answer): string {
  return answer.kind === 'failed' ? answer.code : answer.kind
}
