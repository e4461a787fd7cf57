// Programs iptables: plans fragments, sends the differences, and keeps the table state.

import type { Logger } from '../../lib/log.ts'
import type { NodeView, ServicePortChange, ServicePortName, ServicePortView } from '../../model/types.ts'
import { CHAINS } from './plan/names.ts'
import { type IptablesPlanner, LARGE_CLUSTER_ENDPOINTS } from './plan/planner.ts'
import { servedUdpFrontends } from './plan/served.ts'
import { diffFragments, type FragmentChange } from '../../iptables/diff-fragments.ts'
import { diffTables, presentFragments } from '../../iptables/diff-tables.ts'
import type { Base, Fragment } from '../../iptables/fragment.ts'
import { KeptText } from '../../iptables/kept-text.ts'
import { TablesState } from '../../iptables/tables-state.ts'
import type { WriteChain } from '../../iptables/ops.ts'
import { RestoreError } from '../../iptables/restore-error.ts'
import { type Backend, Script } from '../../iptables/script.ts'
import type { TableName, Tables } from '../../iptables/types.ts'
import type { Programmer, SyncStats } from '../../reconcile/programmer.ts'
import { WriteLog } from '../../reconcile/write-log.ts'
import { ServedBefore } from '../../table-sync/served-before.ts'

/** The kernel's side: the iptables programs, or tables in memory. */
export interface IptablesDriver {
  readonly backend: Backend
  /** The tables that there are, without those that no program has used yet. */
  read(): Promise<Tables>
  /** The text comes in pieces, made while they are taken; without any, nothing is done. Rejects with a RestoreError. */
  restore(text: KeptText): Promise<void>
  close(): void
}

export interface IptablesProgrammerOptions {
  readonly planner: IptablesPlanner
  readonly driver: IptablesDriver
  readonly log: Logger
  readonly counts: RuleCounts
  /** Called when the kernel refuses the rules of a service port, which then has none. All others are programmed. */
  readonly onRefused: (service: ServicePortName, reason: string) => void
}

/** What the metrics show. */
export interface RuleCounts {
  /** Rules in the table, and rules written by the last sync. */
  rules(table: TableName, total: number, written: number): void
  restoreFailed(sync: 'full' | 'partial'): void
}

const TABLES: readonly TableName[] = ['filter', 'nat']

/** A change without effect, in each table that services have rules in. Refused, it shows that no service is to blame. */
const NO_CHANGE = TABLES.map((table): WriteChain => ({
  op: 'writeChain',
  table,
  chain: CHAINS.canary,
  rules: [],
  owner: undefined,
  stage: 'entry',
}))

export class IptablesProgrammer implements Programmer {
  readonly #options: IptablesProgrammerOptions
  /** Undefined when it is not known what is in the kernel. */
  #state: TablesState | undefined
  /** How many endpoints all services have. */
  #endpoints = 0
  /** Service ports whose rules were refused. */
  readonly #refused = new Set<ServicePortName>()
  /** Refused service ports that have been reported, also by syncs that failed. */
  #reported = new Set<ServicePortName>()

  constructor(options: IptablesProgrammerOptions) {
    this.#options = options
  }

  async sync(node: NodeView, changes: readonly ServicePortChange[]): Promise<SyncStats> {
    const state = this.#state
    if (state === undefined) throw new Error('Cannot program changes: the tables have not been programmed as a whole')
    const stats = new ScriptLog()
    for (const { before, after } of changes) {
      this.#endpoints += (after?.backends.length ?? 0) - (before?.backends.length ?? 0)
    }
    const fragmentChanges = changes.map(({ name, before, after }): FragmentChange => ({
      // Refused rules are not there.
      before: before === undefined || this.#forgetRefused(name) ? undefined : this.#plan(node, before),
      after: after && this.#plan(node, after),
    }))
    // Worthless until the kernel has accepted.
    this.#state = undefined
    try {
      await this.#restore(new Script(diffFragments(fragmentChanges, state), this.#options.driver.backend), stats)
    } catch (error) {
      if (error instanceof RestoreError) this.#options.counts.restoreFailed('partial')
      throw error
    }
    this.#finish(state, stats)
    return stats
  }

  async syncAll(node: NodeView, all: Iterable<ServicePortView>): Promise<SyncStats> {
    const views = [...all]
    const stats = new ScriptLog()
    this.#state = undefined
    this.#refused.clear()
    this.#endpoints = views.reduce((sum, { backends }) => sum + backends.length, 0)
    const base = this.#options.planner.base(node)
    try {
      this.#finish(await this.#attempt(base, this.#planEach(node, views), stats), stats)
    } catch (error) {
      if (!(error instanceof RestoreError)) throw error
      // A service that was refused before is tried again and again.
      const { log } = this.#options
      const message = 'Cannot program all rules at once, looking for the service that is in the way'
      if (this.#reported.size === 0) log.error(error, message)
      else log.v(2)?.info(message, { err: error.message })
      const fragments = [...this.#planEach(node, views)]
      this.#finish(await this.#attemptGroups(base, fragments, stats), stats)
    }
    for (const view of views) stats.served?.stays(view)
    stats.gone = stats.served?.rest() ?? []
    return stats
  }

  close(): void {
    this.#options.driver.close()
  }

  /** Makes the kernel agree with these fragments, whatever is there. */
  async #attempt(base: Base, fragments: Iterable<Fragment>, stats: ScriptLog): Promise<TablesState> {
    const state = new TablesState(base)
    const saved = await this.#options.driver.read()
    stats.served ??= new ServedBefore(servedUdpFrontends(saved))
    const script = new Script(diffTables(saved, fragments, state), this.#options.driver.backend)
    try {
      await this.#restore(script, stats)
      return state
    } catch (error) {
      if (!(error instanceof RestoreError)) throw error
      this.#options.counts.restoreFailed('full')
      throw error.line === undefined ? error : error.blame(script.ownerOf(error.line))
    }
  }

  /** Programs what is in the kernel already, then the others in groups, down to those that are refused. */
  async #attemptGroups(base: Base, fragments: readonly Fragment[], stats: ScriptLog): Promise<TablesState> {
    const accepted = presentFragments(await this.#options.driver.read(), fragments)
    const present = new Set(accepted)
    const missing = fragments.filter((fragment) => !present.has(fragment))
    // When even this is refused, no service is to blame.
    await this.#attempt(base, accepted, stats)
    await this.#expectToBeHeard()
    let groups = missing.length > 0 ? [missing] : []
    const triedAgain = new Set<Fragment>()
    while (groups.length > 0) {
      const [group = [], ...others] = groups
      groups = others
      try {
        await this.#attempt(base, [...accepted, ...group], stats)
        for (const fragment of group) accepted.push(fragment)
      } catch (error) {
        if (!(error instanceof RestoreError)) throw error
        await this.#expectToBeHeard()
        const [only] = group
        // Alone twice, it is too much for the memory that there is. The others are served all the same.
        const isWorthAnotherTry = error.isShortage && group.length === 1 && !triedAgain.has(only!)
        if (isWorthAnotherTry) triedAgain.add(only!)
        groups = [...(isWorthAnotherTry ? [group] : this.#withoutCulprit(group, error)), ...others]
      }
    }
    return this.#attempt(base, accepted, stats)
  }

  #withoutCulprit(group: readonly Fragment[], error: RestoreError): Fragment[][] {
    // Memory may have run out at any line.
    const named = error.isShortage ? undefined : group.find(({ owner }) => owner === error.owner)
    const culprit = group.length === 1 ? group[0] : named
    if (culprit === undefined) return halves(group)
    this.#refuse(culprit.owner, error)
    return group.length === 1 ? [] : [group.filter((fragment) => fragment !== culprit)]
  }

  /**
   * Throws when the kernel takes no change at all, as one without memory does: iptables-legacy says no more of it than of
   * rules that are wrong.
   */
  async #expectToBeHeard(): Promise<void> {
    const { driver, counts } = this.#options
    try {
      await driver.restore(new KeptText(new Script(NO_CHANGE, driver.backend).text()))
    } catch (error) {
      if (error instanceof RestoreError) counts.restoreFailed('full')
      throw error
    }
  }

  #refuse(service: ServicePortName, error: RestoreError): void {
    const { log, onRefused } = this.#options
    this.#refused.add(service)
    // It is tried again and again.
    if (this.#reported.has(service)) return
    this.#reported.add(service)
    log.error(error, 'Cannot program a service: iptables refuses its rules. All other services are programmed', {
      service,
    })
    onRefused(service, error.message)
  }

  /** Whether it was refused. */
  #forgetRefused(service: ServicePortName): boolean {
    this.#reported.delete(service)
    return this.#refused.delete(service)
  }

  #plan(node: NodeView, view: ServicePortView): Fragment {
    const cluster = this.#endpoints > LARGE_CLUSTER_ENDPOINTS ? 'large' : 'small'
    return this.#options.planner.service(node, view, cluster)
  }

  *#planEach(node: NodeView, views: readonly ServicePortView[]): Generator<Fragment> {
    for (const view of views) yield this.#plan(node, view)
  }

  async #restore(script: Script, stats: ScriptLog): Promise<void> {
    const text = new KeptText(script.text())
    await this.#options.driver.restore(text)
    stats.countScript(script)
    stats.keep(() => commandsOf(text))
  }

  #finish(state: TablesState, stats: ScriptLog): void {
    this.#state = state
    this.#reported = new Set(this.#refused)
    if (this.#refused.size > 0) stats.refused = this.#refused.size
    for (const table of TABLES) this.#options.counts.rules(table, state.ruleCount(table), stats.written(table))
  }
}

function halves(group: readonly Fragment[]): Fragment[][] {
  const middle = group.length >> 1
  return [group.slice(0, middle), group.slice(middle)]
}

/** What changes rules, each with its table. */
function* commandsOf(text: Iterable<string>): Generator<string> {
  let table = ''
  for (const piece of text) {
    for (const line of piece.split('\n')) {
      if (line.startsWith('*')) table = line.slice(1)
      else if (line.startsWith('-')) yield `-t ${table} ${line}`
    }
  }
}

class ScriptLog extends WriteLog {
  declare refused?: number
  /** What the rules served before they were compared. */
  served: ServedBefore | undefined
  readonly #written = new Map<TableName, number>()

  countScript({ lines, bytes, rules }: Script): void {
    this.count(lines, bytes)
    for (const [table, count] of rules) this.#written.set(table, this.written(table) + count)
  }

  written(table: TableName): number {
    return this.#written.get(table) ?? 0
  }
}
