// Which calls of pods arrive at this node as they were made.
//
// A pod may run a cluster of its own (kind, k3s), whose Services have the same addresses as ours. What its processes dial is not for us, though they
// are in the cgroup of pods: rules in the pod's network namespace, or in one between, lead it elsewhere. So sockets of a namespace
// choose for an address only when a connection from there was seen to arrive: the program at connect() leaves the first one to the rules, another
// says which address and port it got, and the node's connection tracker knows whether it arrived from just these, untranslated. That holds
// for a while; then one connection goes by the rules again.

import { Buffer } from 'node:buffer'
import { HashMap } from '../bpf/hash-map.ts'
import { Queue } from '../bpf/queue.ts'
import { Conntrack } from '../conntrack/driver.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { closeAllNow } from '../lib/close-all.ts'
import { type Bytes, type Family, asBytes } from '../lib/ip.ts'
import { atOnce } from '../lib/steps.ts'
import { CALL, CALLED_LENGTH, decodeCall, layouts, NETNS_LENGTH, type SeenCall } from './layout.ts'

export interface WitnessOptions {
  readonly families: readonly Family[]
  /** Whether the rules would take the address for a pod's, as far as an address tells. */
  readonly isPod: (address: string, family: Family) => boolean
  /** It looks no more. */
  readonly onFailed: (error: unknown) => void
  readonly clock: Clock
}

/** So often it looks for calls. */
const LOOK_MS = 100
/** So many times it looks for one: the first packet may wait until the address of the next hop is known. */
const LOOKS = 5
/** What was seen is trusted for so long. */
const TRUSTED_MS = 60_000

/** The most namespaces and addresses that are remembered; the least used one makes room. */
const MOST_SEEN = 1 << 14
/** The most calls under way that are remembered. */
const MOST_CALLS = 1 << 12
const COOKIE_LENGTH = 8
const TIME_LENGTH = 8

export class Witness {
  /** By namespace and dialled address: until when that is trusted, in nanoseconds of the monotonic clock. */
  readonly seen: ReadonlyMap<Family, HashMap>
  /** Calls that were left to the rules, by the cookie of their socket. */
  readonly called: HashMap
  /** The same with the socket's own address. */
  readonly calls: Queue
  readonly #options: WitnessOptions
  #timer: Timer | undefined
  #waiting: { readonly call: SeenCall; readonly looks: number }[] = []
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
          const keyLength = NETNS_LENGTH + layouts[family].frontends.keyLength
          const map = new HashMap({
            ...recent,
            name: `kube_seen${family}`,
            keyLength,
            valueLength: TIME_LENGTH,
            capacity: MOST_SEEN,
          })
          return [family, open(map)]
        }),
      )
    } catch (error) {
      closeAllNow(...opened.map((each) => () => each.close()))
      throw error
    }
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

  #look(): void {
    const fresh = this.calls.take().map((value) => ({ call: decodeCall(value), looks: 0 }))
    const arrived: SeenCall[] = []
    this.#waiting = [...this.#waiting, ...fresh].flatMap(({ call, looks }) => {
      if (this.#hasArrived(call)) arrived.push(call)
      else if (looks < LOOKS) return [{ call, looks: looks + 1 }]
      return []
    })
    for (const { family, key } of arrived) atOnce(this.seen.get(family)!.put([[key, trustedUntil()]]))
  }

  #hasArrived({ family, protocol, tuple }: SeenCall): boolean {
    if (!this.#options.isPod(tuple.src, family)) return false
    this.#tracker ??= new Conntrack()
    return this.#tracker.lookUp(family, protocol, { original: tuple }) !== undefined
  }
}

function trustedUntil(): Bytes {
  const time = Buffer.alloc(TIME_LENGTH)
  time.writeBigUInt64LE(process.hrtime.bigint() + BigInt(TRUSTED_MS) * 1_000_000n)
  return asBytes(time.toString('latin1'))
}
