// Random clusters with real packets, for one mode: the explanation, the walk through what the kernel holds, and what a packet
// really does are held against each other. They are the pairs of test/conformance/explain-random.test.ts: a part of them in
// every run, EXPLAIN_PAIRS=10000 for all; EXPLAIN_SEED makes others, EXPLAIN_CLUSTER=325 takes that one alone.

import { expect, afterAll, beforeAll, test } from 'vitest'
import { Conntrack } from '../../src/conntrack/driver.ts'
import type { Decision } from '../../src/diagnose/explain/decide.ts'
import { decideAll, type Known } from '../../src/diagnose/explain/known.ts'
import { type Family, joinHostPort } from '../../src/lib/ip.ts'
import type { Connection } from '../../src/model/follow.ts'
import { modeNamed } from '../../src/modes/all.ts'
import type { ModeName } from '../conformance/modes.ts'
import { hostAt, node, nodeAddresses } from '../support/addresses.ts'
import type { ApiObject } from '../support/builders.ts'
import { askProxy } from '../support/ask-proxy.ts'
import { explainConnection, type FlowContext } from '../support/explain-flow.ts'
import { nextProbePort, probeOnce, silentForMs } from '../support/flows.ts'
import { serveEcho, serveUdpAt } from '../support/netns/echo-server.ts'
import { restIn, type Netns } from '../support/netns/netns.ts'
import type { Answer } from '../support/netns/probe.ts'
import { serveSctp } from '../support/netns/sctp.ts'
import { startProxy, whyNotRun } from '../support/proxy-process.ts'
import {
  aRandomCluster,
  aRandomPacket,
  Dice,
  type RandomCluster,
  type RandomPacket,
} from '../support/random-clusters.ts'
import { objectsOf } from '../support/random-objects.ts'
import { openRig, type Rig } from '../support/rig.ts'

const seed = Number(process.env['EXPLAIN_SEED'] ?? 1)
/** Of each cluster. */
const PACKETS = 25
const ALL_CLUSTERS = 400
/** With the usual seed, the packets of this one have every outcome in every mode. */
const FIRST = 35
const hasEverything = seed === 1 && process.env['EXPLAIN_CLUSTER'] === undefined

interface Pairs {
  readonly nth: number
  readonly family: Family
  readonly cluster: RandomCluster
  readonly packets: readonly RandomPacket[]
}

export function testRandomPairs(mode: ModeName, pairs: number): void {
  const asked = Number(process.env['EXPLAIN_PAIRS'] ?? pairs)
  const reason =
    process.env['PROXY_COMMAND'] === undefined ? whyNotRun(mode) : 'another program cannot be asked for what it decided'
  if (reason !== undefined) {
    test(`random pairs in ${mode} mode`, ({ skip }) => skip(reason))
    return
  }
  let rig: Rig
  let extra: AsyncDisposable
  beforeAll(async () => {
    rig = await openRig()
    extra = await addToNetwork(rig)
  })
  afterAll(async () => {
    await extra?.[Symbol.asyncDispose]()
    await rig?.[Symbol.asyncDispose]()
  })
  test(
    `${asked} random pairs in ${mode} mode: what is explained, what the kernel holds and what packets do are the same`,
    { timeout: Math.max(300_000, asked * 3_000) },
    async () => {
      const seen = { to: 0, reject: 0, drop: 0, untouched: 0 }
      const complaints: string[] = []
      let tried = 0
      for (const [settings, group] of bySettings(chosenPairs(Math.ceil(asked / PACKETS)))) {
        await using proxy = await startProxy({
          netns: rig.network.node,
          mode,
          kubeconfig: rig.cluster.kubeconfig,
          settings,
        })
        let before: readonly ApiObject[] = []
        for (const each of group) {
          const objects = objectsOf(each.cluster)
          rig.cluster.remove(...before)
          rig.cluster.put(...objects)
          before = objects
          await rig.settled(20_000)
          complaints.push(...(await tryPairs(rig, mode, each, seen)))
          tried += each.packets.length
          if (tried % 1000 === 0) console.log(`${mode}: ${tried} of ${asked} pairs, ${complaints.length} complaints`)
          expect(proxy.ended, proxy.logTail()).toBeUndefined()
          // More than a few tell nothing new.
          expect(complaints.length, complaints.join('\n')).toBeLessThan(20)
        }
        rig.cluster.remove(...before)
      }
      expect(complaints).toEqual([])
      console.log(`${mode}: ${JSON.stringify(seen)} of ${asked} pairs, seed ${seed}`)
      expect(seen.to).toBeGreaterThan(0)
      expect(seen.to).toBeLessThan(asked)
      if (hasEverything) expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(0)
    },
  )
}

/** As many as asked for, of all of them alike: each has a setting and a family of its own. */
function chosenPairs(clusters: number): Pairs[] {
  const only = process.env['EXPLAIN_CLUSTER']
  if (only !== undefined) return [pairsOf(Number(only))]
  const step = Math.max(1, Math.floor(ALL_CLUSTERS / clusters) - 1) | 1
  return Array.from({ length: clusters }, (_, i) =>
    pairsOf(clusters >= ALL_CLUSTERS ? i : (FIRST + i * step) % ALL_CLUSTERS),
  )
}

function pairsOf(nth: number): Pairs {
  const dice = new Dice(seed * 1_000_000 + nth)
  const family = nth % 2 === 0 ? 4 : 6
  const cluster = aRandomCluster(dice, family)
  const packets = Array.from({ length: PACKETS }, () => aRandomPacket(dice, family, cluster))
  return { nth, family, cluster, packets }
}

function bySettings(all: readonly Pairs[]): Map<RandomCluster['settings'], Pairs[]> {
  const groups = new Map<string, Pairs[]>()
  for (const pairs of all) {
    const key = JSON.stringify(pairs.cluster.settings)
    groups.set(key, [...(groups.get(key) ?? []), pairs])
  }
  return new Map([...groups.values()].map((group) => [group[0]!.cluster.settings, group]))
}

/** Every endpoint of a random cluster is answered, and each answer passes the node under test, as it does in a cluster. */
async function addToNetwork({ network }: Rig): Promise<AsyncDisposable> {
  const servers: (AsyncDisposable | Disposable)[] = []
  for (const [name, netns] of [...Object.entries(network.pods), ['node', network.node] as const]) {
    servers.push(await serveEcho(netns, name, { tcp: [], udp: [9090] }), serveSctp(netns, name, 9090))
  }
  // The node has several addresses, and must answer from the one that was asked.
  for (const port of [8080, 9090]) {
    servers.push(serveSctp(network.node, 'node', port, node.ip))
    for (const family of [4, 6] as const) {
      servers.push(await serveUdpAt(network.node, 'node', port, node.ip[family]))
    }
  }
  for (const family of [4, 6] as const) {
    const flag = `-${family}`
    network.peer.run('ip', [flag, 'route', 'add', 'default', 'via', node.ip[family], 'table', '100'])
    network.peer.run('ip', [flag, 'rule', 'add', 'iif', node.bridge, 'lookup', '100', 'priority', '100'])
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        if (Symbol.asyncDispose in server) await server[Symbol.asyncDispose]()
        else server[Symbol.dispose]()
      }
    },
  }
}

async function tryPairs(
  { network }: Rig,
  mode: ModeName,
  { nth, family, packets }: Pairs,
  seen: Record<Decision['outcome'], number>,
): Promise<string[]> {
  const known = await askProxy(network.node)
  const context = await readContext(network.node, { mode, family, known })
  using tracker = openTracker(network.node)
  const tried = packets.map(async ({ from, connection }, i): Promise<string[]> => {
    const { decision, differences, about } = explainConnection(connection, context)
    seen[decision.outcome]++
    const fromPort = nextProbePort()
    const to = { address: connection.destination, port: connection.port, protocol: connection.protocol }
    const isSilent = expectations(decision, connection).has('silent')
    const answer = await oneByOne(to.protocol === 'SCTP' ? `${from} ${to.address}` : undefined, () =>
      probeOnce(network.sources[from], to, {
        from: connection.source,
        fromPort,
        ...(isSilent ? { timeoutMs: silentForMs } : {}),
      }),
    )
    const complaint = judge({ decision, connection, answer, fromPort, tracker, family })
    return [...differences, ...(complaint === undefined ? [] : [complaint])].map(
      (text) => `cluster ${nth}, packet ${i}, ${from}: ${text}\n${about}`,
    )
  })
  return (await Promise.all(tried)).flat()
}

const queues = new Map<string, Promise<unknown>>()

/** A raw socket hears of every refusal between its two addresses: probes of SCTP that share them wait for each other. */
function oneByOne<T>(queue: string | undefined, work: () => Promise<T>): Promise<T> {
  if (queue === undefined) return work()
  const next = (queues.get(queue) ?? Promise.resolve()).then(work)
  queues.set(queue, next)
  return next
}

type Shown = 'silent' | 'refused' | `${string} sees ${'the client' | 'the node'}`

/** What a client may see of it. */
function expectations(decision: Decision, connection: Connection): Set<Shown> {
  switch (decision.outcome) {
    case 'reject':
      return new Set(['refused'])
    case 'drop':
      return new Set(['silent'])
    case 'untouched':
      // Nothing listens on the node where no service is; SCTP is taken, by a server that has another port, and the rest ends in the hole.
      return new Set([
        nodeAddresses.includes(connection.destination) && connection.protocol !== 'SCTP' ? 'refused' : 'silent',
      ])
    case 'to':
      return new Set(
        decision.backends
          .filter(({ eligible }) => eligible)
          .map(({ ip, port, masquerade }): Shown => {
            const isNode = masquerade || nodeAddresses.includes(connection.source)
            // A client does not take a packet that claims to come from itself.
            if (!isNode && ip === connection.source) return 'silent'
            return `${hostAt(ip)}:${port} sees ${isNode ? 'the node' : 'the client'}`
          }),
      )
  }
}

interface Judged {
  readonly decision: Decision
  readonly connection: Connection
  readonly answer: Answer
  readonly fromPort: number
  readonly tracker: Conntrack
  readonly family: Family
}

function judge(judged: Judged): string | undefined {
  const { decision, connection, answer } = judged
  const expected = expectations(decision, connection)
  const shown = shownBy(answer)
  if (!expected.has(shown as Shown)) return `expected ${[...expected].join(' or ')}, got ${shown}`
  if (decision.outcome !== 'to' || shown !== 'silent') return undefined
  const went = whereItWent(judged)
  return went === joinHostPort(connection.source, 0).replace(/:0$/, '')
    ? undefined
    : `expected to be sent back to ${connection.source}, got ${went}`
}

/** Where it does not come back, the connection tracker of the node knows where it went. */
function whereItWent({ connection, fromPort, tracker, family }: Judged): string {
  const protocol = { TCP: 6, UDP: 17, SCTP: 132, ICMP: 1 }[connection.protocol]
  const { source: src, destination: dst, port: dport } = connection
  const flow = tracker.lookUp(family, protocol, { original: { src, dst, sport: fromPort, dport } })
  if (flow === undefined) return 'no connection'
  return family === 4 ? flow.reply.src : `[${flow.reply.src}]`
}

function shownBy(answer: Answer): string {
  if (answer.kind === 'failed') return answer.code
  if (answer.kind !== 'answered') return answer.kind
  const { greeting, client } = answer
  const sees = nodeAddresses.includes(greeting.seenAs)
    ? 'the node'
    : greeting.seenAs === client
      ? 'the client'
      : greeting.seenAs
  return `${greeting.host}:${greeting.port} sees ${sees}`
}

function openTracker(netns: Netns): Conntrack & Disposable {
  const tracker = netns.enter(() => new Conntrack())
  return Object.assign(tracker, { [Symbol.dispose]: () => tracker.close() })
}

async function readContext(
  netns: Netns,
  { mode, family, known }: { readonly mode: ModeName; readonly family: Family; readonly known: Known },
): Promise<FlowContext> {
  using _ = restIn(netns)
  const walkable = await (await modeNamed(mode).load()).readWalkable?.({ family, now: () => 0 })
  return { known, decided: decideAll(known, family)!, walkable: walkable! }
}
