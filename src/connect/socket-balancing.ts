// Processes of a cgroup choose the endpoint of a frontend when they call connect(): their packets then carry its address
// from the first to the last, and nothing has to translate them. The proxy writes the backends into BPF maps, and attaches programs
// that read them to the cgroup.
//
// The kernel removes maps and programs when this process ends. Where an entry is missing, connect() dials the frontend, and the
// rules of the mode translate it as ever. So nothing has to be cleaned up, and a failure here breaks no connection.

import type { Clock } from '../lib/clock.ts'
import { mostPlaces } from '../lib/apportion.ts'
import { messageOf } from '../lib/errors.ts'
import { cidrContains, type Family, ipBytes } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { inTurns, type Steps } from '../lib/steps.ts'
import { TryAgain } from '../lib/try-again.ts'
import { mergeChanges } from '../model/merge-changes.ts'
import type { NodeView, ServicePortChange, ServicePortView } from '../model/types.ts'
import { openNodePortAddresses } from '../model/node-port-addresses.ts'
import { findCgroup, hasPods } from './cgroup.ts'
import { closeMaps, ConnectPrograms, createMaps, type Maps, type Table, TABLES } from './connect-programs.ts'
import type { ChosenCount } from './layout.ts'
import { type Choosers, ConnectPlan, type Elements, type MapChange } from './plan.ts'

export interface SocketBalancingOptions {
  /** `pods`, `node`, `all`, or the folder of a cgroup. */
  readonly scope: string
  readonly families: readonly Family[]
  /** All service ports of a family, as the kernel has acknowledged them. */
  readonly views: (family: Family) => Iterable<ServicePortView>
  readonly machineAddresses: () => readonly string[]
  /** Whether rules of the mode open node ports on 127.0.0.1. Where listeners do, the node view says so. */
  readonly opensLoopback: boolean
  /** How many frontends have entries now. */
  readonly onFrontends: (family: Family, count: number) => void
  /** The proxy tries again. */
  readonly onFailed: (error: unknown) => void
  readonly onMended: () => void
  readonly clock: Clock
  readonly log: Logger
}

/** Elements that are planned before other work has a turn. */
const PIECE = 4096
/** A new map has room for twice the elements, and this many more. */
const SPARE = 1024
/** So long after the last choice an answer of UDP may come. */
const ANSWERS_MS = 500
/** The longest pause between attempts where the kernel refuses. */
const RETRY_MS = 60_000

/** A family, and what its maps have. */
interface Followed {
  readonly family: Family
  readonly plan: ConnectPlan
  node: NodeView
  /** Changes that its maps do not have yet. */
  pending: readonly ServicePortChange[]
  /** The addresses of the node may have changed. */
  hasNewAddresses: boolean
  /** The maps have had all service ports once. */
  isBuilt: boolean
}

export class SocketBalancing {
  readonly #options: SocketBalancingOptions
  /** A family that is missing here begins with all service ports. */
  readonly #followed = new Map<Family, Followed>()
  /** The families that had their first sync: only these have views. */
  readonly #programmed = new Map<Family, NodeView>()
  readonly #again: TryAgain
  #programs: ConnectPrograms | undefined
  /** The last error. */
  #problem: string | undefined
  /** Writes the pending changes, one family after the other. */
  #working: Promise<void> | undefined

  constructor(options: SocketBalancingOptions) {
    this.#options = options
    const { clock, onFailed, onMended } = options
    const again = () => {
      for (const node of this.#programmed.values()) this.#begin(node)
    }
    this.#again = new TryAgain({ clock, again, onFailed, onMended, mostMs: RETRY_MS })
  }

  /** After a sync. */
  follow(node: NodeView, changes: readonly ServicePortChange[]): void {
    const followed = this.#followed.get(node.family)
    this.#programmed.set(node.family, node)
    if (followed === undefined || followed.node.masqueradeAll !== node.masqueradeAll) {
      if (!this.#again.isWaiting) this.#begin(node)
      return
    }
    if (followed.node !== node) followed.hasNewAddresses = true
    followed.node = node
    followed.pending = mergeChanges(followed.pending, changes)
    this.#work()
  }

  /** Those of the machine. */
  addressesChanged(): void {
    for (const followed of this.#followed.values()) followed.hasNewAddresses = true
    this.#work()
  }

  /** The folder of the cgroup that the programs are attached to. */
  get cgroup(): string | undefined {
    return this.#programs?.cgroup
  }

  /** How often each backend was chosen for each frontend. It begins anew when the programs do. */
  async counts(family: Family): Promise<readonly ChosenCount[]> {
    return this.#programs === undefined ? [] : inTurns(this.#programs.counts(family))
  }

  /** For people. */
  status(): string {
    const { scope, families } = this.#options
    if (this.#programs === undefined) return `Socket balancing: not for ${scope}: ${this.#problem ?? 'not yet'}`
    const counts = families.map((family) => `IPv${family}=${this.#followed.get(family)?.plan.frontends ?? 0}`)
    return `Socket balancing: for ${scope}, cgroup ${this.#programs.cgroup}, frontends: ${counts.join(' ')}, of TCP, and of UDP without connect()`
  }

  async close(): Promise<void> {
    this.#again.close()
    this.#followed.clear()
    await this.#working
    await this.#closePrograms()
  }

  #begin(node: NodeView): void {
    const { family } = node
    const pending = Array.from(this.#options.views(family), (view) => ({
      name: view.name,
      before: undefined,
      after: view,
    }))
    const plan = new ConnectPlan(family, this.#choosers(node))
    this.#followed.set(family, { family, plan, node, pending, hasNewAddresses: true, isBuilt: false })
    this.#work()
  }

  /** With masqueradeAll, every connection shall be seen by the rules. */
  #choosers({ masqueradeAll }: NodeView): Choosers {
    return { pods: !masqueradeAll && hasPods(this.#options.scope), node: !masqueradeAll }
  }

  #work(): void {
    this.#working ??= this.#workOff().finally(() => {
      this.#working = undefined
      // A change may have come between the end of the work and now.
      if (this.#next() !== undefined) this.#work()
    })
  }

  /** A failure removes maps and programs of all families. */
  async #workOff(): Promise<void> {
    for (let followed = this.#next(); followed !== undefined; followed = this.#next()) {
      const changes = followed.pending
      followed.pending = []
      try {
        await inTurns(followed.isBuilt ? this.#change(followed, changes) : this.#build(followed, changes))
        if (this.#isGivenUp(followed)) continue
        this.#options.onFrontends(followed.family, followed.plan.frontends)
        followed.isBuilt = true
        if ([...this.#programmed.keys()].every((family) => this.#followed.get(family)?.isBuilt === true))
          this.#again.succeeded()
      } catch (error) {
        this.#failed(error)
      }
    }
  }

  #next(): Followed | undefined {
    return [...this.#followed.values()].find(
      ({ isBuilt, pending, hasNewAddresses }) => !isBuilt || pending.length > 0 || hasNewAddresses,
    )
  }

  /** Something failed meanwhile, or this was closed. */
  #isGivenUp(followed: Followed): boolean {
    return this.#followed.get(followed.family) !== followed
  }

  /** The programs get the maps when they are complete. */
  *#build(followed: Followed, all: readonly ServicePortChange[]): Steps<void> {
    const programs = (this.#programs ??= this.#open())
    const maps = yield* this.#fill(followed, all)
    if (maps !== undefined) programs.use(followed.family, maps)
  }

  /** Undefined when the family was given up meanwhile. */
  *#fill(followed: Followed, all: readonly ServicePortChange[]): Steps<Maps | undefined> {
    const { family, plan } = followed
    const most = (table: Table) => all.reduce((sum, change) => sum + mostElements(change, table), 0)
    const maps = createMaps(family, {
      live: 2 * most('live') + SPARE,
      backends: 2 * most('backends') + SPARE,
      frontends: 2 * most('frontends') + SPARE,
    })
    try {
      yield* maps.frontends.put(this.#planNodeAddresses(followed).put)
      for (let next = 0; next < all.length && !this.#isGivenUp(followed);) {
        const piece: ServicePortChange[] = []
        for (let elements = 0; next < all.length && elements < PIECE; next++) {
          piece.push(all[next]!)
          elements += mostElements(all[next]!, 'backends')
        }
        const change = plan.plan(piece)
        for (const table of TABLES) yield* maps[table].put(change[table].put)
        yield
      }
    } catch (error) {
      closeMaps(maps)
      throw error
    }
    if (!this.#isGivenUp(followed)) return maps
    closeMaps(maps)
    return undefined
  }

  *#change(followed: Followed, changes: readonly ServicePortChange[]): Steps<void> {
    const { family, plan } = followed
    const change: MapChange = plan.plan(changes)
    this.#programs!.forget(family, change.forgotten)
    for (const table of TABLES) yield* this.#put(family, table, change[table])
    for (const table of TABLES.toReversed()) yield* this.#programs!.maps(family)[table].delete(change[table].deleted)
    if (!followed.hasNewAddresses) return
    const addresses = this.#planNodeAddresses(followed)
    yield* this.#put(family, 'frontends', addresses)
    yield* this.#programs!.maps(family).frontends.delete(addresses.deleted)
  }

  #planNodeAddresses(followed: Followed): Elements {
    const { nodePortAddresses: open, family, localhostNodePorts } = followed.node
    const { machineAddresses, opensLoopback } = this.#options
    followed.hasNewAddresses = false
    const own = machineAddresses().filter((address) => address.includes(':') === (family === 6))
    const isOpen = localhostNodePorts === 'served by listeners' || (opensLoopback && family === 4)
    const loopback = !isOpen ? [] : open.kind === 'only' ? (open.loopback ?? []) : ['127.0.0.1']
    return followed.plan.planNodeAddresses([...openNodePortAddresses(open, own), ...loopback])
  }

  /** A map without room is replaced by one twice as large. */
  *#put(family: Family, table: Table, { put }: Elements): Steps<void> {
    const programs = this.#programs!
    while (!(yield* programs.maps(family)[table].put(put))) {
      const former = programs.maps(family)
      const capacity = 2 * former[table].options.capacity + put.length
      programs.use(family, { ...former, [table]: yield* former[table].grown(capacity) })
    }
  }

  #open(): ConnectPrograms {
    const { scope, families, clock, log } = this.#options
    const programs = new ConnectPrograms(findCgroup(scope), {
      families,
      stickyList: (family, number) => this.#followed.get(family)?.plan.stickyList(number),
      isPod: (address, family) => mayBePod(address, this.#programmed.get(family)),
      onFailed: (error) => this.#failed(error),
      clock,
    })
    log.info('Sockets choose the endpoints of Services', { for: scope, cgroup: programs.cgroup })
    this.#problem = undefined
    return programs
  }

  #failed(error: unknown): void {
    const { log, families, onFrontends } = this.#options
    this.#followed.clear()
    this.#again.failed(error)
    // What cannot be closed goes with the process.
    this.#closePrograms().catch(() => {})
    for (const family of families) onFrontends(family, 0)
    const problem = messageOf(error)
    // The same error is logged once.
    if (problem !== this.#problem) log.error(error, 'Sockets cannot choose endpoints, the rules do without')
    this.#problem = problem
  }

  async #closePrograms(): Promise<void> {
    const programs = this.#programs
    this.#programs = undefined
    if (programs === undefined) return
    programs.stopChoosing()
    await new Promise<void>((resolve) => this.#options.clock.setTimeout(resolve, ANSWERS_MS))
    programs.close()
  }
}

/** The most elements that a service port needs. */
function mostElements({ after }: ServicePortChange, table: Table): number {
  if (after === undefined) return 0
  if (table === 'frontends') return after.frontends.length
  if (table === 'live' && after.protocol !== 'UDP') return 0
  const places = Object.values(after.lists).map((list) => (list.isWeighted ? mostPlaces(list.length) : list.length))
  return places.reduce((sum, count) => sum + count, 0)
}

/** Only ranges tell by the address; by its interface, a packet that arrives from another namespace is taken for a pod's. */
function mayBePod(address: string, node: NodeView | undefined): boolean {
  const detector = node?.localDetector
  return detector?.kind !== 'cidr' || detector.cidrs.some((cidr) => cidrContains(cidr, ipBytes(address)))
}
