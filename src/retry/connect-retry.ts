// Gives connections whose backend does not answer another backend. It combines the failures that the kernel reports with the service
// ports of the model. A running proxy has one, for all families.

import { Conntrack, type Flow } from '../conntrack/driver.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import { closeAllNow } from '../lib/close-all.ts'
import { type Bytes, type Family, joinHostPort, asBytes } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { TryAgain, type TryAgainOptions } from '../lib/try-again.ts'
import type { Ejections } from '../model/ejections.ts'
import { serviceOf } from '../model/service-model.ts'
import { addressField, portField } from '../nftables/fields.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../model/types.ts'
import { BackendIndex, planCoveredFrontends, planNodePortAddresses } from './covered.ts'
import { decodeFailure, type Failure, type FailureKind, type Place } from './decode-failure.ts'
import { RENEW_MS } from './names.ts'
import { openPacketLog, type PacketLog } from './nflog.ts'
import { RetryTable } from './retry-table.ts'
import { Suspects, type Suspect, type SuspectChange } from './suspects.ts'
import { probeBackend } from './probe-backend.ts'

/** What the metrics count. */
export interface RetryCounts {
  changed(change: SuspectChange, family: Family, reason: FailureKind): void
  /** Connections that got another attempt. */
  retried(family: Family, reason: FailureKind, connections: number): void
  /** The kernel dropped reports of failures. */
  missed(): void
}

export interface ConnectRetryOptions {
  readonly families: readonly Family[]
  /** Who retries: the kernel, the kernel behind IPVS, or the mode itself, which then reports failures. */
  readonly where: 'kernel' | 'behind IPVS' | 'mode'
  readonly machineAddresses: () => readonly string[]
  /** The backends that fail, in a mode that retries itself. */
  readonly failing?: ((family: Family) => readonly Place[]) | undefined
  /** The set of ejected backends changed; `ports` are the service ports that this concerns. */
  readonly onEjections: (family: Family, ejections: Ejections, ports: readonly ServicePortName[]) => void
  readonly onSuspect: (suspect: Suspect, change: 'ejected' | 'returned', ports: readonly ServicePortName[]) => void
  /** Called when writing the table of a family fails, before the proxy tries again, and when it succeeds after that. */
  readonly onTable: (family: Family) => Pick<TryAgainOptions, 'onFailed' | 'onMended'>
  readonly counts: RetryCounts
  readonly clock: Clock
  readonly log: Logger
}

const TCP = 6
/** The most connections that wait for the probe of their backend. */
const MOST_WAITING = 4096
/** The most backends that are probed when it is not known which one of a frontend's failed. */
const MOST_BEHIND = 32
/** The longest pause between attempts where the kernel refuses. */
const REOPEN_MS = 60_000
/** Errors are not logged more often than this. */
const LOG_MS = 10_000
/** How often the proxy asks a mode that retries itself for failing backends. */
const POLL_MS = 500

/** What is known of one family. */
interface Watched {
  readonly family: Family
  readonly index: BackendIndex
  /** By service port: its elements in the table. */
  readonly frontends: Map<ServicePortName, readonly Bytes[]>
  table: RetryTable | undefined
  /** Writes the table again after a failure. */
  readonly again: TryAgain
  node: NodeView | undefined
  nodePortAddresses: readonly string[]
  views: Map<ServicePortName, ServicePortView>
  /** The same by frontend, made on demand. */
  byFrontend: Map<Bytes, ServicePortView> | undefined
}

function viewsByFrontend({ frontends, views }: Watched): Map<Bytes, ServicePortView> {
  const found = new Map<Bytes, ServicePortView>()
  for (const [name, keys] of frontends) {
    const view = views.get(name)
    if (view !== undefined) for (const key of keys) found.set(key, view)
  }
  return found
}

export class ConnectRetry {
  readonly #options: ConnectRetryOptions
  readonly #watched: ReadonlyMap<Family, Watched>
  readonly #suspects: Suspects
  /** Connections to silent backends, by backend, until its probe has ended. */
  readonly #waiting = new Map<string, Flow[]>()
  #waitingCount = 0
  #kernel: { readonly packets: PacketLog; readonly conntrack: Conntrack } | undefined
  #timer: Timer | undefined
  #loggedMs = -Infinity
  /** Tables of an earlier process have been removed. */
  #isSwept = false
  #isClosed = false

  constructor(options: ConnectRetryOptions) {
    this.#options = options
    this.#watched = new Map(
      options.families.map((family) => [
        family,
        {
          family,
          index: new BackendIndex(),
          frontends: new Map(),
          table: undefined,
          again: new TryAgain({
            clock: options.clock,
            again: () => this.#settle(this.#watched.get(family)!),
            mostMs: REOPEN_MS,
            ...options.onTable(family),
          }),
          node: undefined,
          nodePortAddresses: [],
          views: new Map(),
          byFrontend: undefined,
        },
      ]),
    )
    this.#suspects = new Suspects({
      clock: options.clock,
      probe: probeBackend,
      onChange: (suspect, change) => this.#suspectChanged(suspect, change),
    })
  }

  /** After a sync. If this fails, services are still served. */
  follow(node: NodeView, changes: readonly ServicePortChange[]): void {
    this.#follow(node, (watched) => this.#followChanges(watched, changes))
  }

  #follow(node: NodeView, apply: (watched: Watched) => void): void {
    const watched = this.#watched.get(node.family)
    if (watched === undefined || this.#isClosed) return
    watched.node = node
    watched.nodePortAddresses = planNodePortAddresses(node, this.#options.machineAddresses())
    watched.byFrontend = undefined
    apply(watched)
    this.#forgetFormerBackends(watched)
    this.#sweep(watched)
    this.#schedule()
  }

  /** The addresses of the machine changed, and with them those of node ports. */
  addressesChanged(): void {
    for (const watched of this.#watched.values()) {
      if (watched.node === undefined || watched.views.size === 0) continue
      const views = [...watched.views.values()]
      this.#follow(watched.node, () => this.#followAll(watched, views))
    }
  }

  /** Every suspect, for /statusz and `explain`. */
  suspects(): readonly Suspect[] {
    return this.#suspects.list()
  }

  /** How many service ports connect retry covers now. */
  covered(): number {
    let covered = 0
    for (const { frontends } of this.#watched.values()) covered += frontends.size
    return covered
  }

  /** Before the process ends: removes the rules. */
  end(): void {
    if (this.#isClosed) return
    const tables = [...this.#watched.values()].map(({ table }) => table)
    closeAllNow(...tables.map((table) => () => table?.remove()), () => this.close())
  }

  /** Leaves the rules in place. Without renewal, they stop dropping resets a few seconds later. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#suspects.close()
    for (const { again } of this.#watched.values()) again.close()
    closeAllNow(
      ...Array.from(
        this.#watched.values(),
        ({ table }) =>
          () =>
            table?.close(),
      ),
      () => this.#kernel?.packets.close(),
      () => this.#kernel?.conntrack.close(),
    )
  }

  #followChanges(watched: Watched, changes: readonly ServicePortChange[]): void {
    const gone: Bytes[] = []
    const added: Bytes[] = []
    for (const { name, before } of changes) {
      if (before !== undefined) watched.index.remove(before)
      for (const key of watched.frontends.get(name) ?? []) gone.push(key)
      watched.frontends.delete(name)
      watched.views.delete(name)
    }
    for (const { name, after } of changes) {
      if (after?.connectRetry !== true) continue
      watched.index.add(after)
      watched.views.set(name, after)
      const frontends = planCoveredFrontends(after, watched.nodePortAddresses)
      if (frontends.length > 0) watched.frontends.set(name, frontends)
      for (const key of frontends) added.push(key)
    }
    const stays = new Set(added)
    const known = new Set(gone)
    this.#program(
      watched,
      gone.filter((key) => !stays.has(key)),
      added.filter((key) => !known.has(key)),
    )
  }

  #followAll(watched: Watched, all: Iterable<ServicePortView>): void {
    const before = new Set([...watched.frontends.values()].flat())
    watched.index.clear()
    watched.frontends.clear()
    watched.views = new Map()
    const now: Bytes[] = []
    for (const view of all) {
      if (view.connectRetry !== true) continue
      watched.index.add(view)
      watched.views.set(view.name, view)
      const frontends = planCoveredFrontends(view, watched.nodePortAddresses)
      if (frontends.length > 0) watched.frontends.set(view.name, frontends)
      for (const key of frontends) now.push(key)
    }
    const wanted = new Set(now)
    this.#program(
      watched,
      [...before].filter((key) => !wanted.has(key)),
      now.filter((key) => !before.has(key)),
    )
  }

  /** Updates the table. It exists only while a service port is covered: otherwise no packet should meet its rules. */
  #program(watched: Watched, gone: readonly Bytes[], added: readonly Bytes[]): void {
    // The next attempt creates the table, with all changes until then.
    if (this.#options.where === 'mode' || watched.again.isWaiting) return
    if (watched.table !== undefined && watched.views.size > 0) {
      try {
        watched.table.change(gone, added)
        return
      } catch {
        // Another program changed it.
      }
    } else if (watched.table === undefined && watched.frontends.size === 0) return
    this.#settle(watched)
  }

  /** Creates the table, or removes it when nothing is covered, and tries again later if that fails. */
  #settle(watched: Watched): void {
    try {
      if (watched.views.size === 0) this.#removeTable(watched)
      else this.#build(watched)
      watched.again.succeeded()
    } catch (error) {
      watched.again.failed(error)
    }
  }

  #build(watched: Watched): void {
    this.#kernel ??= this.#openKernel()
    watched.table ??= new RetryTable({ family: watched.family, behindIpvs: this.#options.where === 'behind IPVS' })
    watched.table.build(this.#kernel.packets.group, [...watched.frontends.values()].flat())
  }

  #removeTable(watched: Watched): void {
    watched.table?.remove()
    watched.table?.close()
    watched.table = undefined
  }

  #openKernel(): { readonly packets: PacketLog; readonly conntrack: Conntrack } {
    const packets = openPacketLog({
      onPacket: (packet) => {
        const failure = decodeFailure(packet)
        if (failure !== undefined) this.#guarded(() => this.#failed(failure))
      },
      onLost: () => this.#options.counts.missed(),
    })
    try {
      return { packets, conntrack: new Conntrack() }
    } catch (error) {
      packets.close()
      throw error
    }
  }

  /** Removes tables of an earlier process that are not needed, once all families had their first sync. */
  #sweep(watched: Watched): void {
    if (this.#isSwept || watched.family !== this.#options.families.at(-1)) return
    this.#isSwept = true
    for (const { family, table } of this.#watched.values()) {
      if (table !== undefined) continue
      try {
        const left = new RetryTable({ family, behindIpvs: false })
        closeAllNow(
          () => left.remove(),
          () => left.close(),
        )
      } catch (error) {
        // A kernel without nftables has no such table either.
        this.#options.log.v(2)?.info('Cannot look for a retry table', { ipFamily: `IPv${family}`, error })
      }
    }
  }

  #schedule(): void {
    const { clock, where } = this.#options
    const isNeeded = [...this.#watched.values()].some(({ table, index }) =>
      where === 'mode' ? index.size > 0 : table !== undefined || index.size > 0,
    )
    if (!isNeeded || this.#timer !== undefined || this.#isClosed) return
    this.#timer = clock.setTimeout(() => this.#tick(), where === 'mode' ? POLL_MS : RENEW_MS)
  }

  #tick(): void {
    this.#timer = undefined
    for (const watched of this.#watched.values()) {
      if (this.#options.where === 'mode') this.#askMode(watched)
      else this.#renew(watched)
    }
    this.#schedule()
  }

  /** Renews the elements of `alive`. If another program removed the table, creates it. */
  #renew(watched: Watched): void {
    try {
      watched.table?.renew()
    } catch (error) {
      if (watched.again.isWaiting) return
      this.#options.log.warn('The retry table is built again', { ipFamily: `IPv${watched.family}`, error })
      this.#settle(watched)
    }
  }

  #askMode({ family, index }: Watched): void {
    for (const place of this.#options.failing?.(family) ?? []) {
      if (index.has(place)) this.#report(family, place, 'silent')
    }
  }

  #failed(failure: Failure): void {
    const { counts } = this.#options
    const { kind, family } = failure
    if (kind === 'silent') return this.#silent(failure)
    const { backend } = failure
    if (kind === 'unreachable') {
      const { sender } = failure
      const reply = { src: backend.ip, sport: backend.port, dst: sender.ip, dport: sender.port }
      const flow = this.#kernel!.conntrack.lookUp(family, TCP, { reply })
      if (flow?.isAnswered === false) this.#kernel!.conntrack.delete([flow])
    }
    // The connection tracker deletes a refused connection itself.
    counts.retried(family, kind, 1)
    if (kind === 'unreachable') for (const each of this.#behind(family, backend)) this.#report(family, each, kind)
    this.#report(family, backend, kind)
  }

  /**
   * IPVS reports that it has no route to the backend that it chose, but not which one: the packet that the error quotes still has
   * the address of the frontend. So all backends of the frontend are probed, or a part of very many.
   */
  #behind(family: Family, { ip, port }: Place): readonly Place[] {
    const watched = this.#watched.get(family)
    if (watched === undefined || this.#options.where !== 'behind IPVS') return []
    watched.byFrontend ??= viewsByFrontend(watched)
    const backends = [...(watched.byFrontend.get(asBytes(addressField(ip) + portField(port)))?.backends ?? [])]
    if (backends.length <= MOST_BEHIND) return backends
    const first = Math.floor(Math.random() * backends.length)
    return [...backends.slice(first), ...backends.slice(0, first)].slice(0, MOST_BEHIND)
  }

  /**
   * A repeated SYN may mean a slow network as well as a dead backend. The connection stays as it is until the probe has ended.
   */
  #silent({ family, client, dialled }: Extract<Failure, { kind: 'silent' }>): void {
    const original = { src: client.ip, sport: client.port, dst: dialled.ip, dport: dialled.port }
    const flow = this.#kernel!.conntrack.lookUp(family, TCP, { original })
    if (flow === undefined || flow.isAnswered) return
    const backend = { ip: flow.reply.src, port: flow.reply.sport }
    const state = this.#report(family, backend, 'silent')
    if (state === 'ejected') this.#retry(family, [flow])
    else if (state === 'suspected' && this.#waitingCount < MOST_WAITING) {
      this.#waitingCount++
      const key = joinHostPort(backend.ip, backend.port)
      const flows = this.#waiting.get(key)
      if (flows === undefined) this.#waiting.set(key, [flow])
      else flows.push(flow)
    }
  }

  #report(family: Family, backend: Place, kind: FailureKind): Suspect['state'] | 'trusted' {
    const watched = this.#watched.get(family)
    // Only current backends count: anybody can forge a packet.
    if (watched?.index.has(backend) !== true) return 'trusted'
    // A probe of an own address proves nothing: the node reaches it past its firewall, which clients do not.
    if (this.#options.machineAddresses().includes(backend.ip)) return 'trusted'
    const services = new Set(watched.index.portsOf(backend).map(serviceOf))
    return this.#suspects.report({ family, ...backend }, kind, [...services])
  }

  /**
   * Deletes the connections from the connection tracker, so that the next SYN of each gets a new backend. Keeps one that was answered
   * during the probe: a backend may answer clients, and not this node.
   */
  #retry(family: Family, flows: readonly Flow[]): void {
    const conntrack = this.#kernel?.conntrack
    if (conntrack === undefined) return
    const unanswered = flows.filter(({ original, id }) => {
      const now = conntrack.lookUp(family, TCP, { original })
      return now?.id === id && !now.isAnswered
    })
    const deleted = conntrack.delete(unanswered)
    if (deleted > 0) this.#options.counts.retried(family, 'silent', deleted)
  }

  #suspectChanged(suspect: Suspect, change: SuspectChange): void {
    const { counts, log, onSuspect } = this.#options
    const { family, ip, port, reason } = suspect
    const backend = joinHostPort(ip, port)
    const ports = this.#watched.get(family)?.index.portsOf(suspect) ?? []
    counts.changed(change, family, reason)
    if (change === 'suspected') {
      log.v(1)?.info('A backend is suspected', { backend, reason })
      return
    }
    if (change !== 'acquitted') this.#reportEjections(family, ports)
    if (change === 'ejected') log.warn('A backend is ejected: it does not answer', { backend, reason, services: ports })
    if (change === 'returned') log.info('A backend is back: it answers', { backend, services: ports })
    if (change === 'ejected' || change === 'returned') onSuspect(suspect, change, ports)
    const waiting = this.#waiting.get(backend) ?? []
    this.#waiting.delete(backend)
    this.#waitingCount -= waiting.length
    if (change === 'ejected') this.#guarded(() => this.#retry(family, waiting))
  }

  #reportEjections(family: Family, ports: readonly ServicePortName[]): void {
    const ejected = this.#suspects.list().filter((each) => each.family === family && each.state === 'ejected')
    this.#options.onEjections(family, new Set(ejected.map(({ ip, port }) => joinHostPort(ip, port))), ports)
  }

  #forgetFormerBackends({ family, index }: Watched): void {
    for (const suspect of this.#suspects.list()) {
      if (suspect.family === family && !index.has(suspect)) this.#suspects.forget(suspect)
    }
  }

  #guarded(work: () => void): void {
    try {
      work()
    } catch (error) {
      const { log, clock } = this.#options
      if (clock.monotonicNow() < this.#loggedMs + LOG_MS) return
      this.#loggedMs = clock.monotonicNow()
      log.error(error, 'Connections whose backend does not answer may not be tried again')
    }
  }
}
