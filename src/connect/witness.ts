// Which calls arrive at this node as they were made, and, with session affinity, where the rules lead them.
//
// A pod may run a cluster of its own (kind, k3s), whose Services have the same addresses as ours. What its processes dial is not for us, though they
// are in the cgroup of pods: rules in the pod's network namespace, or in one between, lead it elsewhere. So sockets of a namespace
// choose for an address only when a connection from there was seen to arrive: the program at connect() leaves the first one to the rules, another
// says which address and port it got, and the node's connection tracker knows whether it arrived from just these, untranslated. That holds
// for a while; then one connection goes by the rules again.
//
// A socket of UDP has a port when it sends, but mostly no address. So the proxy remembers from which address the TCP connections of a namespace were seen to
// arrive, and asks the tracker for a datagram from there. A namespace without such a connection goes by the rules.
//
// Affinity goes by the address of a client, which no socket has when it connects. But the rules know it: where they led the connection that was
// seen, sockets of the same namespace go for a while, those of the node's own, too. The rules keep what they know over a restart.

import { HashMap } from '../bpf/hash-map.ts'
import { Queue } from '../bpf/queue.ts'
import { Conntrack, type FlowTuple } from '../conntrack/driver.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { closeAllNow } from '../lib/close-all.ts'
import { type Bytes, type Family, ipBytes, isUnspecified } from '../lib/ip.ts'
import { atOnce } from '../lib/steps.ts'
import type { BackendList } from '../model/backend-list.ts'
import { backendValue, CALL, CALLED_LENGTH, decodeCall, IPPROTO, layouts, type SeenCall, seenValue } from './layout.ts'
import type { StickyList } from './plan.ts'

export interface WitnessOptions {
  readonly families: readonly Family[]
  /** The node's own: no proof is needed there. */
  readonly nodeNetns: bigint
  /** The list of this number, if it has affinity. */
  readonly stickyList: (family: Family, number: number) => StickyList | undefined
  /** Whether the rules would take the address for a pod's, as far as an address tells. */
  readonly isPod: (address: string, family: Family) => boolean
  /** It looks no more. */
  readonly onFailed: (error: unknown) => void
  readonly clock: Clock
}

/** So often it looks for calls. */
const LOOK_MS = 100
/** So many calls it takes at a time. While more come, older ones are lost. */
const CALLS_AT_ONCE = 500
/**
 * So many calls wait for their connection to arrive, of all namespaces and of one. A pod may call as often as it likes where nothing
 * lets it arrive. What is left out goes by the rules, and is taken the next time.
 */
const MOST_WAITING = 256
const MOST_OF_ONE = 16
/** So many times it looks for one: the first packet may wait until the address of the next hop is known. */
const LOOKS = 5
/** What was seen is trusted for so long, and at most for this part of an affinity's time: so much earlier it may end. */
const TRUSTED_S = 60
const TRUSTED_PART = 0.1
const NANOSECONDS = 1e9

/** The most namespaces and addresses that are remembered; the least used one makes room. */
const MOST_SEEN = 1 << 14
/** The most calls under way that are remembered. */
const MOST_CALLS = 1 << 12
const COOKIE_LENGTH = 8

export class Witness {
  /** By namespace and dialled address: until when that is trusted, in nanoseconds of the monotonic clock. */
  readonly seen: ReadonlyMap<Family, HashMap>
  /** Calls that were left to the rules, by the cookie of their socket. */
  readonly called: HashMap
  /** The same with the socket's own address. */
  readonly calls: Queue
  readonly #options: WitnessOptions
  #timer: Timer | undefined
  /** Keys of what was seen of lists with affinity, and until when it is trusted. */
  readonly #stuck = new Map<string, Map<Bytes, bigint>>()
  /** By family and namespace: the address that its connections came from. */
  readonly #addresses = new Map<string, string>()
  /** By family, namespace and dialled address: one call for each is enough. */
  readonly #waiting = new Map<string, { readonly call: SeenCall; looks: number }>()
  #tidiesAtMs: number
  #tracker: Conntrack | undefined

  constructor(options: WitnessOptions) {
    const { families } = options
    this.#options = options
    const opened: { close(): void }[] = []
    const open = <T extends { close(): void }>(it: T): T => {
      opened.push(it)
      return it
    }
    const recent = { memory: 'of the least used' } as const
    try {
      this.called = open(
        new HashMap({
          ...recent,
          name: 'kube_called',
          keyLength: COOKIE_LENGTH,
          valueLength: CALLED_LENGTH,
          capacity: MOST_CALLS,
        }),
      )
      this.calls = open(new Queue('kube_calls', CALL.length, MOST_CALLS))
      this.seen = new Map(
        families.map((family) => {
          const map = new HashMap({
            ...recent,
            ...layouts[family].seen,
            name: `kube_seen${family}`,
            capacity: MOST_SEEN,
          })
          return [family, open(map)]
        }),
      )
    } catch (error) {
      closeAllNow(...opened.map((each) => () => each.close()))
      throw error
    }
    this.#tidiesAtMs = options.clock.monotonicNow() + TRUSTED_S * 1000
    this.#wait()
  }

  close(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    closeAllNow(
      () => this.#tracker?.close(),
      () => this.called.close(),
      () => this.calls.close(),
      ...Array.from(this.seen.values(), (map) => () => map.close()),
    )
  }

  #wait(): void {
    this.#timer = this.#options.clock.setTimeout(() => {
      try {
        this.#look()
        this.#wait()
      } catch (error) {
        this.#options.onFailed(error)
      }
    }, LOOK_MS)
  }

  /** The backends of these lists are others now. */
  forget(family: Family, lists: readonly number[]): void {
    for (const list of lists) {
      const keys = this.#stuck.get(`${family} ${list}`)
      if (keys === undefined) continue
      this.#stuck.delete(`${family} ${list}`)
      atOnce(this.seen.get(family)!.delete([...keys.keys()]))
    }
  }

  #look(): void {
    this.#take()
    for (const [id, each] of this.#waiting) {
      if (this.#saw(each.call) || ++each.looks === LOOKS) this.#waiting.delete(id)
    }
    const nowMs = this.#options.clock.monotonicNow()
    if (nowMs < this.#tidiesAtMs) return
    this.#tidiesAtMs = nowMs + TRUSTED_S * 1000
    this.#tidy()
  }

  #take(): void {
    const byNamespace = new Map<bigint, number>()
    const count = (netns: bigint) => byNamespace.set(netns, (byNamespace.get(netns) ?? 0) + 1)
    for (const { call } of this.#waiting.values()) count(call.netns)
    for (const value of this.calls.take(CALLS_AT_ONCE)) {
      const call = decodeCall(value)
      const id = `${call.family} ${call.key}`
      if (this.#waiting.has(id) || this.#waiting.size >= MOST_WAITING) continue
      if ((byNamespace.get(call.netns) ?? 0) >= MOST_OF_ONE) continue
      this.#waiting.set(id, { call, looks: 0 })
      count(call.netns)
    }
  }

  /** Forgets keys that are not trusted any longer: namespaces come and go. */
  #tidy(): void {
    const now = process.hrtime.bigint()
    for (const [list, keys] of this.#stuck) {
      for (const [key, until] of keys) if (until <= now) keys.delete(key)
      if (keys.size === 0) this.#stuck.delete(list)
    }
  }

  /** False: it has not arrived yet. */
  #saw({ family, protocol, netns, list, key, tuple: known }: SeenCall): boolean {
    const { nodeNetns, isPod, stickyList } = this.#options
    const namespace = `${family} ${netns}`
    const src = isUnspecified(ipBytes(known.src)) ? this.#addresses.get(namespace) : known.src
    if (src === undefined || (netns !== nodeNetns && !isPod(src, family))) return true
    this.#tracker ??= new Conntrack()
    const flow = this.#tracker.lookUp(family, protocol, { original: { ...known, src } })
    if (flow === undefined) return false
    if (protocol === IPPROTO.TCP) this.#remember(namespace, src)
    const sticky = stickyList(family, list)
    const backend = sticky && backendOf(sticky.list, flow.reply)
    // It may have been another list when the call was made.
    if (sticky !== undefined && backend === undefined) return true
    const seconds = Math.min(TRUSTED_S, TRUSTED_PART * (sticky?.seconds ?? Infinity))
    const until = process.hrtime.bigint() + BigInt(Math.round(seconds * NANOSECONDS))
    if (sticky !== undefined && !this.#stick(`${family} ${list}`, key, until)) return true
    atOnce(this.seen.get(family)!.put([[key, seenValue(family, backend, until)]]))
    return true
  }

  #remember(namespace: string, address: string): void {
    this.#addresses.delete(namespace)
    this.#addresses.set(namespace, address)
    if (this.#addresses.size > MOST_SEEN) this.#addresses.delete(this.#addresses.keys().next().value!)
  }

  /** False: there are so many of this list that no more can be kept. */
  #stick(list: string, key: Bytes, until: bigint): boolean {
    let keys = this.#stuck.get(list)
    if (keys === undefined) this.#stuck.set(list, (keys = new Map()))
    if (keys.size >= MOST_SEEN && !keys.has(key)) return false
    keys.set(key, until)
    return true
  }
}

function backendOf(list: BackendList, { src, sport }: FlowTuple): Bytes | undefined {
  const address = ipBytes(src)
  return list.has(address, sport) ? backendValue(address, sport) : undefined
}
