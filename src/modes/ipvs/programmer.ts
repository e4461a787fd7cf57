// Programs the ipvs mode: virtual servers, the link with their addresses, and the rules around them.

import type { Clock } from '../../lib/clock.ts'
import { closeAllNow } from '../../lib/close-all.ts'
import { type Cidr, cidrContains, type Family, isLoopback, ipBytes } from '../../lib/ip.ts'
import type { FrontendAddress, NodeView, ServicePortChange, ServicePortView } from '../../model/types.ts'
import { LINK } from './plan/names.ts'
import { ipvsPlanner } from './plan/planner.ts'
import type { NodeAddresses } from './plan/rules.ts'
import type { ServerSettings } from './plan/servers.ts'
import type { Schedulers } from './schedulers.ts'
import { diffPlans, diffState, type IpvsDiff } from '../../ipvs/diff.ts'
import type { Drained } from '../../ipvs/drain.ts'
import { formatOp } from '../../ipvs/format.ts'
import { ServerOwners, type WantedServer } from '../../ipvs/owners.ts'
import type { IpvsOp, ServerId, ServerState } from '../../ipvs/types.ts'
import { diffAddresses, formatLinkOp, type LinkOp } from '../../links/types.ts'
import { AddressUsers } from './addresses.ts'
import { Drains, type DrainDriver } from './drains.ts'
import type { TableDriver } from '../../nftables/table-driver.ts'
import { TableProgrammer } from '../../table-sync/table-programmer.ts'
import type { FamilyAudit } from './table-watch.ts'
import type { FinishStats, Programmer, SyncStats } from '../../reconcile/programmer.ts'
import { WriteLog } from '../../reconcile/write-log.ts'

/** The kernel's virtual servers: IpvsDriver, or some in memory. */
export interface ServerDriver extends DrainDriver {
  read(family: 4 | 6): readonly ServerState[]
  close(): void
}

/** The link of ours: LinkDriver, or one in memory. */
export interface AddressDriver {
  /** Creates the link where it is missing. */
  ensure(): void
  /** The addresses of the link, and all others of the machine. */
  read(family: 4 | 6): { readonly own: readonly string[]; readonly others: readonly string[] }
  apply(ops: readonly LinkOp[]): { readonly bytes: number }
  close(): void
}

export interface IpvsProgrammerOptions {
  readonly family: Family
  readonly servers: ServerDriver
  readonly link: AddressDriver
  readonly rules: TableDriver
  readonly clock: Clock
  /** The kernel's name of the scheduler. */
  readonly scheduler: string
  /** Virtual servers in these ranges that are not ours are left alone. */
  readonly excludeCidrs: readonly Cidr[]
  readonly drainLimitMs: number
  /** Gets all changes that this programmer makes, and so finds those of other programs. */
  readonly audit: FamilyAudit
  readonly onDrained: (drained: readonly Drained[]) => void
  readonly onError: (error: unknown) => void
  /** Absent: the kernel has all of them. */
  readonly schedulers?: Schedulers | undefined
}

/** What holds between two full syncs. */
interface Context {
  readonly settings: ServerSettings
  readonly owners: ServerOwners
  readonly users: AddressUsers
}

export class IpvsProgrammer implements Programmer {
  readonly #options: IpvsProgrammerOptions
  readonly #rules: TableProgrammer
  readonly #drains: Drains
  #inForce: Context | undefined
  #nodeAddresses: NodeAddresses = { own: [], nodePort: [] }

  constructor(options: IpvsProgrammerOptions) {
    const { servers, clock, drainLimitMs, audit, onDrained, onError } = options
    this.#options = options
    this.#rules = new TableProgrammer({
      planner: {
        table: ipvsPlanner.table,
        base: (node) => ipvsPlanner.base(node, this.#nodeAddresses),
        service: (node, port) => ipvsPlanner.service(node, port),
      },
      driver: options.rules,
      clock,
    })
    this.#drains = new Drains({
      driver: servers,
      clock,
      limitMs: drainLimitMs,
      onApplied: (ops) => audit.note(ops),
      onDrained,
      onError,
    })
  }

  get #context(): Context | undefined {
    return this.#inForce
  }

  /** Without one, only a full sync knows what the kernel has. */
  set #context(context: Context | undefined) {
    this.#inForce = context
    this.#options.audit.isInForce = context !== undefined
  }

  /**
   * The rules come first: what a new virtual server needs is there before its first connection, and what leaves is refused
   * before it is gone.
   */
  async sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats> {
    const context = this.#context
    if (context === undefined) throw new Error('Cannot program changes: IPVS has not been programmed as a whole')
    // Worthless until the kernel has accepted.
    this.#context = undefined
    const stats = new WriteLog()
    stats.add(await this.#rules.sync(node, changes))
    const wanted = (views: readonly (ServicePortView | undefined)[]) =>
      views.flatMap((view) => this.#wantedServers(node, view, context.settings))
    const { before, after } = context.owners.change(
      wanted(changes.map((change) => change.before)),
      wanted(changes.map((change) => change.after)),
    )
    this.#reportSchedulers(node, changes, context.settings)
    this.#program(diffPlans(before, after, this.#drains.list), stats)
    this.#bind(context.users.change(changes), stats)
    this.#context = context
    return stats
  }

  async syncAll(node: NodeView, views: Iterable<ServicePortView>): Promise<SyncStats> {
    const { servers, link, scheduler, schedulers, audit } = this.#options
    this.#context = undefined
    const stats = new WriteLog()
    const all = [...views]
    link.ensure()
    const { own, others } = link.read(node.family)
    this.#nodeAddresses = { own: others, nodePort: nodePortAddresses(node, others) }
    stats.add(await this.#rules.syncAll(node, all))

    const settings = { scheduler, nodePortAddresses: this.#nodeAddresses.nodePort }
    const owners = new ServerOwners(settings.nodePortAddresses)
    schedulers?.forget()
    const wanted = all.flatMap((view) => this.#wantedServers(node, view, settings))
    const changes = all.map((view) => ({ name: view.name, after: view }))
    this.#reportSchedulers(node, changes, settings)
    const planned = owners.change([], wanted).after
    const before = this.#drains.restart()
    const actual = servers.read(node.family)
    audit.reset(actual)
    const diff = diffState(actual, planned, (server) => this.#isExcluded(server))
    stats.gone = goneUdp(diff.ops)
    this.#program(diff, stats)
    this.#drains.list.inherit(before)

    const users = new AddressUsers(others, all)
    this.#bind(diffAddresses(own, users.bound()), stats)
    this.#context = { settings, owners, users }
    return stats
  }

  /** Looks after backends that take no more connections, until they are gone. */
  async finish(): Promise<FinishStats> {
    const { againInMs: rulesInMs = Infinity, ...stats } = await this.#rules.finish()
    const againInMs = Math.min(rulesInMs, this.#drains.continue() ?? Infinity)
    return { ...stats, againInMs: againInMs === Infinity ? undefined : againInMs }
  }

  close(): void {
    const { link, servers } = this.#options
    this.#context = undefined
    closeAllNow(
      () => this.#rules.close(),
      () => link.close(),
      () => servers.close(),
    )
  }

  #wantedServers(node: NodeView, view: ServicePortView | undefined, settings: ServerSettings): readonly WantedServer[] {
    if (view === undefined) return []
    const planned = ipvsPlanner.servers(node, view, settings)
    return this.#options.schedulers?.available(planned) ?? planned
  }

  #reportSchedulers(
    node: NodeView,
    changes: readonly Pick<ServicePortChange, 'name' | 'after'>[],
    settings: ServerSettings,
  ): void {
    const { schedulers } = this.#options
    if (schedulers?.lacksSome !== true) return
    for (const { name, after } of changes)
      schedulers.report(name, after === undefined ? [] : ipvsPlanner.servers(node, after, settings))
  }

  #program(diff: IpvsDiff, stats: WriteLog): void {
    this.#apply([...diff.ops, ...this.#drains.plan(diff)], stats)
    const begun = this.#drains.begin(diff)
    stats.keep(() => begun.map((op) => `ipvsadm ${formatOp(op)}`))
    stats.count(begun.length, 0)
  }

  #apply(ops: readonly IpvsOp[], stats: WriteLog): void {
    if (ops.length === 0) return
    stats.keep(() => each(ops, (op) => `ipvsadm ${formatOp(op)}`))
    stats.count(ops.length, this.#options.servers.apply(ops).bytes)
    this.#options.audit.note(ops)
  }

  #bind(ops: readonly LinkOp[], stats: WriteLog): void {
    if (ops.length === 0) return
    stats.keep(() => each(ops, (op) => formatLinkOp(op, LINK)))
    stats.count(ops.length, this.#options.link.apply(ops).bytes)
  }

  #isExcluded({ address }: ServerId): boolean {
    const bytes = ipBytes(address)
    return this.#options.excludeCidrs.some((cidr) => cidrContains(cidr, bytes))
  }
}

/** One by one: of many, only the first are looked at. */
function* each<T>(values: readonly T[], textOf: (value: T) => string): Generator<string> {
  for (const value of values) yield textOf(value)
}

function nodePortAddresses({ nodePortAddresses: open }: NodeView, machine: readonly string[]): string[] {
  if (open.kind === 'only') return open.addresses.filter((address) => machine.includes(address))
  return machine.filter((address) => !isLoopback(ipBytes(address)))
}

/** UDP servers that no service wants any more: flows to them may go on. */
function goneUdp(ops: readonly IpvsOp[]): FrontendAddress[] {
  return ops.flatMap((op) => (op.op === 'deleteServer' && op.server.protocol === 'UDP' ? [op.server] : []))
}
