// Packets that are pending while rules change: random histories of services, endpoints and clients, many at once. When it has
// been quiet for some seconds, no new connection and no datagram reaches an endpoint that it must not, affinity holds, and
// nothing of the rules leads to what is gone.
//
// PENDING_HISTORIES=10000 plays more of them, PENDING_SEED others; PENDING_HISTORY=17 plays that one alone.

import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Conntrack, type Flow } from '../../src/conntrack/driver.ts'
import type { FaultyMode } from '../faults/modes.ts'
import { Cgroup, whyNoCgroup } from '../support/cgroup.ts'
import { eventually } from '../support/eventually.ts'
import { Endpoints } from '../support/pending/endpoints.ts'
import { aHistory, type History, simplerHistories } from '../support/pending/history.ts'
import { Play } from '../support/pending/play.ts'
import { startProxy, whyNotRun, type ProxyProcess } from '../support/proxy-process.ts'
import { Dice } from '../support/random-clusters.ts'
import { openRig, type Rig } from '../support/rig.ts'

const seed = Number(process.env['PENDING_SEED'] ?? 1)
/** A client sends its SYN again after one second, and after one more. */
const QUIET_MS = 2500
/** The search for the smallest history that fails. */
const SHRINK_MS = 90_000

export interface PendingOptions {
  readonly histories: number
  readonly atOnce: number
  /** `--socket-balancing` for the pods of the node, and for the node itself. */
  readonly balancesSockets?: true
}

export function testPendingPackets(mode: FaultyMode, { histories, atOnce, balancesSockets }: PendingOptions): void {
  const reason = whyNotRun(mode.mode) ?? (balancesSockets === true ? whyNoCgroup() : undefined)
  const label = `${mode.label} mode${balancesSockets === true ? ', sockets choose' : ''}`
  if (reason !== undefined) {
    test(`pending packets in ${label}`, ({ skip }) => skip(reason))
    return
  }
  const only = process.env['PENDING_HISTORY']
  const first = Number(only ?? 0)
  const count = only === undefined ? Number(process.env['PENDING_HISTORIES'] ?? histories) : 1
  let rig: Rig
  let endpoints: Endpoints
  let proxy: ProxyProcess
  let clients: Cgroup | undefined

  beforeAll(async () => {
    rig = await openRig()
    mode.prepare(rig.network.node)
    endpoints = await Endpoints.open(rig)
    if (balancesSockets === true) clients = new Cgroup(`kube-proxy-ts-pending-${process.pid}`)
    const { localPod, otherLocalPod, node } = rig.network.sources
    for (const source of [localPod, otherLocalPod, node]) source.clients = clients
    proxy = await startProxy({
      netns: rig.network.node,
      mode: mode.mode,
      kubeconfig: rig.cluster.kubeconfig,
      args: [
        ...mode.args,
        '--connect-retry=annotated',
        ...(clients === undefined ? [] : [`--socket-balancing=${clients.folder}`]),
      ],
    })
  })
  afterAll(async () => {
    await proxy?.[Symbol.asyncDispose]()
    await endpoints?.[Symbol.asyncDispose]()
    await rig?.[Symbol.asyncDispose]()
    clients?.[Symbol.dispose]()
  })

  /** What is wrong with each of them. */
  async function playAll(all: readonly History[]): Promise<string[][]> {
    const plays = all.map((history) => new Play(rig, endpoints, history))
    try {
      await Promise.all(plays.map((play) => play.begin()))
      await rig.settled(20_000)
      await Promise.all(plays.map((play) => play.steps()))
      await rig.settled(20_000)
      await sleep(QUIET_MS)
      const before = endpoints.arrivals()
      await Promise.all(plays.map((play) => play.ask()))
      const after = endpoints.arrivals()
      const leftovers = await findLeftovers(plays.flatMap((play) => play.gone()))
      const problems = plays.map((play) => [
        ...play.judge(before, after),
        ...play.gone().flatMap((address) => leftovers.get(address) ?? []),
      ])
      expect(proxy.ended, proxy.logTail()).toBeUndefined()
      expect(
        proxy
          .log()
          .split('\n')
          .filter((line) => line.startsWith('E')),
        'errors of the proxy',
      ).toEqual([])
      return problems
    } finally {
      for (const play of plays) play.end()
    }
  }

  /** What still leads to these addresses, in the rules or among the flows of UDP. */
  async function findLeftovers(addresses: readonly string[]): Promise<Map<string, string[]>> {
    const gone = new Set(addresses)
    const found = new Map<string, string[]>()
    const add = (address: string, what: string) => found.set(address, [...(found.get(address) ?? []), what])
    await eventually(
      'nothing leads to what is gone',
      async () => {
        found.clear()
        for (const line of mode.rules(rig.network.node).split('\n')) {
          // A destination of IPVS that takes nothing new waits for the end of its connections.
          if (/ -w 0\b/.test(line)) continue
          for (const [address] of line.matchAll(ADDRESS)) if (gone.has(address)) add(address, `a rule is left: ${line}`)
        }
        // The userspace mode talks to endpoints itself: what it said stands there for a while, and leads nobody anywhere.
        const isStale = ({ original, reply }: Flow) => gone.has(reply.src) && original.dst !== reply.src
        const tracker = rig.network.node.enter(() => new Conntrack())
        try {
          for (const family of [4, 6] as const) {
            const flows = await tracker.find({ family, protocol: 17 }, isStale)
            for (const { original, reply } of flows)
              add(reply.src, `a flow is left: ${original.src}:${original.sport} to ${original.dst}:${original.dport}`)
          }
        } finally {
          tracker.close()
        }
        return found.size === 0 ? undefined : `${found.size} addresses`
      },
      { withinMs: 500, everyMs: 100 },
    ).catch(() => {})
    return found
  }

  /** The smallest history that still fails, of those that were tried. */
  async function shrink(history: History, problems: string[]): Promise<{ history: History; problems: string[] }> {
    let smallest = { history, problems }
    const untilMs = performance.now() + SHRINK_MS
    while (performance.now() < untilMs) {
      const simpler = simplerHistories(smallest.history)
      const results = await playAll(simpler)
      const fails = results.findIndex((each) => each.length > 0)
      if (fails === -1) break
      smallest = { history: simpler[fails]!, problems: results[fails]! }
    }
    return smallest
  }

  test(`${count} histories in ${label}`, { timeout: Math.max(300_000, count * 3000) + 4 * SHRINK_MS }, async () => {
    for (let nth = first; nth < first + count; nth += atOnce) {
      const numbers = Array.from({ length: Math.min(atOnce, first + count - nth) }, (_, i) => nth + i)
      const all = numbers.map((number) => aHistory(new Dice(seed * 1_000_000 + number)))
      const results = await playAll(all)
      const fails = results.flatMap((problems, i) => (problems.length > 0 ? [i] : []))
      if (fails.length > 0) {
        const [i = 0] = fails
        console.log(fails.map((each) => `history ${numbers[each]}: ${results[each]!.join('; ')}`).join('\n'))
        const smallest = await shrink(all[i]!, results[i]!)
        throw new Error(
          `${fails.length} of ${all.length} histories fail (seed ${seed}: ${fails.map((each) => numbers[each]).join()}).\n` +
            `History ${numbers[i]}: ${results[i]!.join('; ')}\n` +
            `The smallest that fails like it: ${smallest.problems.join('; ')}\n${JSON.stringify(smallest.history, undefined, 1)}`,
        )
      }
      if (count > 10 * atOnce) console.log(`${label}: ${nth + numbers.length} of ${count} histories, seed ${seed}`)
    }
  })
}

const ADDRESS = /\b10\.1\.\d+\.\d+|\bfd01:[\da-f:]+/g
