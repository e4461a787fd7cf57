// Ten thousand connections to endpoints that weigh differently: what part of them each gets.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { Conntrack } from '../../src/conntrack/driver.ts'
import { WEIGHTS_ANNOTATION } from '../../src/model/weights.ts'
import type { ModeName } from '../conformance/modes.ts'
import { pods } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { Cgroup, whyNoCgroup } from '../support/cgroup.ts'
import { openTcp, tcpProbe, type Target } from '../support/netns/probe.ts'
import { type ProxyProcess, startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const CONNECTIONS = 10_000
const AT_ONCE = 20
/** 256 together: the lightest shows whether a share is exact to 1 in 256. */
const WEIGHTS = { localB: 128, localC: 100, remoteA: 27, remoteB: 1 } as const
type Name = keyof typeof WEIGHTS
const NAMES = Object.keys(WEIGHTS) as Name[]

export interface WeightsOptions {
  readonly mode: ModeName
  /** `by chance`: five standard deviations more are allowed, wrong once in a million runs. */
  readonly chosen: 'in turn' | 'by chance'
  /** Whether clients choose at connect(). */
  readonly atConnect?: boolean
}

export function testWeights({ mode, chosen, atConnect = false }: WeightsOptions): void {
  const how = atConnect ? 'at connect()' : `in ${mode} mode`
  const title = `of ${CONNECTIONS} connections each endpoint gets what it weighs, ${how}`
  const reason = whyNotRun(mode) ?? (atConnect ? whyNoCgroup() : undefined)
  if (reason !== undefined) {
    test(title, ({ skip }) => skip(reason))
    return
  }
  let rig: Rig
  let proxy: ProxyProcess
  let clients: Cgroup | undefined

  beforeAll(async () => {
    rig = await openRig()
    if (atConnect) clients = new Cgroup(`kube-proxy-ts-test-${process.pid}-weights`)
    if (clients !== undefined) rig.network.sources.localPod.clients = clients
    const args = clients === undefined ? [] : [`--socket-balancing=${clients.folder}`]
    proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig, args })
  })
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await rig?.[Symbol.asyncDispose]()
    clients?.[Symbol.dispose]()
  })

  test(title, async () => {
    const text = NAMES.map((name) => `${pods[name].ip[4]}=${WEIGHTS[name]}`).join(', ')
    const service = aService({ annotations: { [WEIGHTS_ANNOTATION]: `${text}, *=0` } })
    rig.cluster.put(service, aSlice(service, [...NAMES, 'localA']))
    await rig.settled()
    const to = { address: service.spec.clusterIP, port: 80 }
    const counts = await ask(to)
    const total = NAMES.reduce((sum, name) => sum + WEIGHTS[name], 0)
    for (const name of NAMES) {
      const part = WEIGHTS[name] / total
      const chance = chosen === 'by chance' ? 5 * Math.sqrt((part * (1 - part)) / CONNECTIONS) : 0
      const got = (counts.get(name) ?? 0) / CONNECTIONS
      expect(Math.abs(got - part), `${name} got ${got}, and weighs ${part}`).toBeLessThan(1 / 256 + chance)
    }
    expect([...counts.keys()].sort()).toEqual([...NAMES].sort())
    if (atConnect) expect(await isTranslated(to)).toBe(false)
  })

  async function ask(to: Target): Promise<Map<string, number>> {
    const counts = new Map<string, number>()
    let left = CONNECTIONS
    const client = async () => {
      while (left-- > 0) {
        const answer = await tcpProbe(rig.network.sources.localPod, to)
        const host = answer.kind === 'answered' ? answer.greeting.host : answer.kind
        counts.set(host, (counts.get(host) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, client))
    return counts
  }

  /** Whether the tracker knows a connection by the address of the Service. */
  async function isTranslated(to: Target): Promise<boolean> {
    const { answer, conversation } = await openTcp(rig.network.sources.localPod, to)
    try {
      if (answer.kind !== 'answered') throw new Error(`No answer from ${to.address}: ${answer.kind}`)
      const original = { src: answer.client, sport: answer.clientPort, dst: to.address, dport: to.port }
      return rig.network.node.enter(() => {
        const tracker = new Conntrack()
        const flow = tracker.lookUp(4, 6, { original })
        tracker.close()
        return flow !== undefined
      })
    } finally {
      conversation.close()
    }
  }
}
