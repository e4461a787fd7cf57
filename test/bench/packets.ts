// What a packet pays: connect() and bytes through a service, beside the same without one and beside kube-proxy's rules.
//   [GO_KUBE_PROXY=/path/to/kube-proxy] npm run bench:packets -- [--rounds 3] [--batches 30] [--within 120] [services ...]
//
// Each kind of rules has a network namespace and a process of its own, and they are measured in turn, a hundred connections at a
// time: A B C, A B C. Client, server and kernel work on one thread of that process, and the figure is its CPU time: other work
// on the machine is not in it. A process may be a tenth faster than another all its life, so there are several rounds of
// processes. kube-proxy's rules are its own, written by it; without GO_KUBE_PROXY they are left out.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { shippedProgram } from './beside-contestant.ts'
import { median, table } from './figures.ts'
import { type Target, targets } from './packets-cluster.ts'
import { CONNECTS } from './local-client.ts'
import type { Answer, Maker, Order } from './packets-place.ts'

/** A process that measures in a place of its own. */
class Place {
  readonly name: string
  readonly #child: ChildProcess = fork(new URL('packets-place.js', import.meta.url), ['measure'])

  constructor(name: string) {
    this.name = name
  }

  /** Undefined where the rules do not come within the time that is given. */
  static async open(name: string, maker: Maker, services: number): Promise<Place | undefined> {
    const place = new Place(name)
    const { error } = await place.#order({ do: 'open', settings: { name, maker, services, withinMs } })
    if (error === undefined) return place
    console.error(`${services} services, ${name}: ${error}`)
    await place.close()
    return undefined
  }

  async measure(what: 'connect' | 'transfer', ip: string, port: number): Promise<number | undefined> {
    const { figure, error } = await this.#order({ do: what, ip, port })
    if (error !== undefined) throw new Error(`Cannot measure ${this.name}: ${error}`)
    return figure
  }

  async close(): Promise<void> {
    await this.#order({ do: 'close' })
    this.#child.disconnect()
  }

  async #order(order: Order): Promise<Answer> {
    const answer = once(this.#child, 'message') as Promise<[Answer]>
    this.#child.send(order)
    return (await answer)[0]
  }
}

/** No service at all; tracked as every connection is that may have a service; and the least that the kernel can do for one. */
const tracked = `
table inet tracked {
  chain output { type filter hook output priority 0; ct state invalid drop; }
}`

/** What any rule that translates makes all connections of the node pay, though none of them is translated. */
const translating = `${tracked}
table inet translating {
  chain prerouting { type nat hook prerouting priority -100; }
  chain output { type nat hook output priority -100; }
  chain postrouting { type nat hook postrouting priority 100; }
}`

const oneRule = (services: number) => `${tracked}
table inet one {
  chain output {
    type nat hook output priority -100
    ${targets(services)
      .map(({ family, ip, port, endpoint }) => {
        const [word, to] = family === 4 ? ['ip', endpoint] : ['ip6', `[${endpoint}]`]
        return `${word} daddr ${ip} tcp dport ${port} dnat ${word} to ${to}:8080`
      })
      .join('\n    ')}
  }
}`

/** What is measured in a place: connections to a service, or to one of its endpoints. */
interface Contest {
  readonly name: string
  readonly place: Place
  readonly dials: 'service' | 'endpoint'
}

async function openPlaces(services: number): Promise<Contest[]> {
  const go = process.env['GO_KUBE_PROXY']
  const ours = { program: shippedProgram, mode: 'nftables' }
  const makers: Record<string, Maker | undefined> = {
    direct: { rules: '' },
    [TRACKED]: { rules: tracked },
    'direct, empty NAT': { rules: translating },
    'one dnat rule': { rules: oneRule(services) },
    'kube-proxy-ts': ours,
    'chosen at connect()': { ...ours, balancesSockets: true },
    'kube-proxy nftables': go === undefined ? undefined : { program: go, mode: 'nftables' },
    'kube-proxy iptables': go === undefined ? undefined : { program: go, mode: 'iptables' },
  }
  const contests: Contest[] = []
  for (const [name, maker] of Object.entries(makers)) {
    const place = maker && (await Place.open(name, maker, services))
    if (place === undefined) continue
    contests.push({ name, place, dials: name.startsWith('direct') ? 'endpoint' : 'service' })
    // What any connection pays on a node with these rules, though it has no service.
    if (name === 'kube-proxy-ts') contests.push({ name: BASE, place, dials: 'endpoint' })
  }
  return contests
}

interface Asked {
  readonly target: Target
  readonly what: 'connect' | 'transfer'
  readonly words: string
  readonly digits: number
  /** In all places: to the endpoint itself. */
  readonly dials?: 'endpoint'
  readonly samples: Map<string, number[]>
}

/** What is measured, in the order of the table. */
function questions(services: number): Omit<Asked, 'samples'>[] {
  return targets(services).flatMap((target) => {
    const connects = { target, what: 'connect', words: `connect(), ${target.kind}, µs`, digits: 1 } as const
    if (target.kind !== 'cluster IP') return [connects]
    return [
      { ...connects, words: 'connect(), no Service, µs', dials: 'endpoint' },
      connects,
      { target, what: 'transfer', words: '1 MB, µs', digits: 0 },
    ]
  })
}

async function measure(services: number): Promise<string[][]> {
  const asked: Asked[] = questions(services).map((question) => ({ ...question, samples: new Map() }))
  for (let round = 0; round < Number(values.rounds); round++) {
    const contests = await openPlaces(services)
    for (const each of asked) await sample(contests, each)
    for (const place of new Set(contests.map((contest) => contest.place))) await place.close()
  }
  return asked.map(({ words, digits, samples, dials }) => {
    const base = median(samples.get(dials === 'endpoint' ? TRACKED : BASE)!)
    const cells = columns.map((column) => {
      const figures = samples.get(column) ?? []
      if (figures.length === 0) return '-'
      return `${(median(figures) / 1000).toFixed(digits)} (${(median(figures) / base).toFixed(2)})`
    })
    return [String(services), words, ...cells]
  })
}

async function sample(contests: readonly Contest[], asked: Asked): Promise<void> {
  const { target, what, samples } = asked
  for (let batch = -2; batch < Number(values.batches); batch++) {
    for (const { name, place, dials } of contests) {
      const [ip, port] = (asked.dials ?? dials) === 'endpoint' ? [target.endpoint, 8080] : [target.ip, target.port]
      const figure = await place.measure(what, ip, port)
      if (batch >= 0 && figure !== undefined) samples.set(name, [...(samples.get(name) ?? []), figure])
    }
  }
}

const { values, positionals } = parseArgs({
  options: {
    batches: { type: 'string', default: '30' },
    rounds: { type: 'string', default: '3' },
    within: { type: 'string', default: '120' },
  },
  allowPositionals: true,
})
const withinMs = Number(values.within) * 1000
const BASE = 'direct, on such a node'
const TRACKED = 'direct, tracked'
const columns = [
  'direct',
  TRACKED,
  'direct, empty NAT',
  BASE,
  'one dnat rule',
  'kube-proxy-ts',
  'chosen at connect()',
  'kube-proxy nftables',
  'kube-proxy iptables',
]

if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make network namespaces')
const rows: string[][] = []
for (const services of positionals.length > 0 ? positionals.map(Number) : [1, 1000, 10_000]) {
  rows.push(...(await measure(services)))
}
console.log(table(['services', 'what', ...columns], rows))
console.log(`
CPU time of the thread that connects, in the kernel and in the calls; in brackets as a multiple of the same connection to an
endpoint itself, past the rules of kube-proxy-ts; without a Service, of a tracked one. "one dnat rule": the least that the kernel can do for a service. Median of
${values.rounds} rounds of processes with ${values.batches} batches of ${CONNECTS} each.`)
