// Runs rows of the packet-flow table in sandboxes: one for all rows of the same settings, a few of them at once. Most of the
// time of a row is waiting for packets that do not come, so many rows run at once, too.

import { setTimeout as sleep } from 'node:timers/promises'
import { tryFlow } from '../../support/flows.ts'
import { isRefused } from './left-out.ts'
import { settingsFlags, TableSandbox } from './table-sandbox.ts'
import type { ApiObject } from '../../support/builders.ts'
import type { Flow, PacketFlowCase } from '../../conformance/packet-flow.ts'

const isSlow = process.env['UML'] !== undefined
const sandboxesAtOnce = isSlow ? 1 : 3
const rowsAtOnce = isSlow ? 6 : 24

export class TableRun {
  readonly #root: string
  readonly #mode: string
  /** By the names of rows, what became of them. */
  readonly #rows = new Map<string, Pending>()
  readonly #usedIndexes = new Set<number>()
  #exclusive: Promise<unknown> = Promise.resolve()
  /** The nodes whose proxy did not run until the end. */
  readonly endedProxies: string[] = []
  /** Ends when all sandboxes are closed. */
  readonly ended: Promise<void>

  constructor(root: string, mode: string, rows: readonly PacketFlowCase[]) {
    this.#root = root
    this.#mode = mode
    for (const row of rows) this.#rows.set(row.name, new Pending())
    this.ended = inParallel(groupBySettings(rows), sandboxesAtOnce, (group) => this.#runGroup(group))
  }

  /** What was not as the row says; empty when all was. Fails when the row could not be tried. */
  complaints(row: PacketFlowCase): Promise<readonly string[]> {
    return this.#rows.get(row.name)!.complaints
  }

  async #runGroup(rows: readonly PacketFlowCase[]): Promise<void> {
    try {
      const sandbox = await this.#open(rows)
      try {
        await inParallel(
          rows.filter((row) => !isRefused(row)),
          rowsAtOnce,
          (row) => sandbox.cluster.put(...row.objects),
        )
        await sandbox.settled()
        await inParallel(rows, rowsAtOnce, async (row) => {
          this.#rows.get(row.name)!.end(await tryRow(sandbox, row))
        })
        this.endedProxies.push(...(await sandbox.endedProxies()))
      } finally {
        await this.#close(sandbox)
      }
    } catch (error) {
      for (const row of rows) this.#rows.get(row.name)!.fail(error)
    }
  }

  #open([first]: readonly PacketFlowCase[]): Promise<TableSandbox> {
    return this.#alone(async () => {
      const index = [0, 1, 2, 3, 4, 5].find((n) => !this.#usedIndexes.has(n)) ?? 0
      const settings = first?.settings ?? {}
      const sandbox = await TableSandbox.open({ root: this.#root, mode: this.#mode, settings, index })
      this.#usedIndexes.add(index)
      return sandbox
    })
  }

  #close(sandbox: TableSandbox): Promise<void> {
    return this.#alone(async () => {
      await sandbox[Symbol.asyncDispose]()
      this.#usedIndexes.delete(sandbox.index)
    })
  }

  /** Sandboxes are opened and closed one at a time: then the lowest number that is free is known beforehand. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(work)
    this.#exclusive = done.catch(() => {})
    return done
  }
}

/** What became of a row, to wait for. */
class Pending {
  readonly complaints: Promise<readonly string[]>
  end!: (complaints: readonly string[]) => void
  fail!: (error: unknown) => void

  constructor() {
    this.complaints = new Promise((resolve, reject) => {
      this.end = resolve
      this.fail = reject
    })
    // A failure is told to the test of the row. There may be none.
    this.complaints.catch(() => {})
  }
}

/** Expects the row's objects in the cluster, unless they are of the kind that cannot be there. */
async function tryRow(sandbox: TableSandbox, row: PacketFlowCase): Promise<readonly string[]> {
  try {
    if (isRefused(row)) return await tryRefusal(sandbox, row)
    const complaints = await tryFlows(sandbox, row.flows, 'at first')
    for (const step of row.steps) {
      if (complaints.length > 0) break
      await sandbox.cluster.remove(...(step.remove ?? []))
      await sandbox.cluster.put(...(step.put ?? []))
      if (step.remove !== undefined || step.put !== undefined) await sandbox.settled()
      await sleep((step.idleSeconds ?? 0) * 1000)
      complaints.push(...(await tryFlows(sandbox, step.flows, step.when)))
    }
    return complaints
  } catch (error) {
    return [String(error)]
  }
}

/** One after the other: flows of one row may depend on each other (affinity). */
async function tryFlows(sandbox: TableSandbox, flows: readonly Flow[], when: string): Promise<string[]> {
  const complaints: string[] = []
  for (const flow of flows) complaints.push(...(await tryFlow(sandbox, sandbox.flow(flow))))
  return complaints.map((complaint) => `${when}: ${complaint}`)
}

async function tryRefusal(sandbox: TableSandbox, row: PacketFlowCase): Promise<readonly string[]> {
  try {
    await sandbox.cluster.put(...row.objects)
    return ['the API server takes its objects: it need not be left out']
  } catch (error) {
    return String(error).includes('"code":422') ? [] : [String(error)]
  } finally {
    await sandbox.cluster.remove(...objectsOf(row))
  }
}

function objectsOf(row: PacketFlowCase): readonly ApiObject[] {
  return [...row.objects, ...row.steps.flatMap((step) => step.put ?? [])]
}

/** The largest first, and of each group those that take long: they take the time in which the others run. */
function groupBySettings(rows: readonly PacketFlowCase[]): PacketFlowCase[][] {
  const groups = new Map<string, PacketFlowCase[]>()
  for (const row of rows) {
    const flags = settingsFlags(row.settings).join(' ')
    groups.set(flags, [...(groups.get(flags) ?? []), row])
  }
  const idle = (row: PacketFlowCase) => row.steps.reduce((sum, step) => sum + (step.idleSeconds ?? 0), 0)
  return [...groups.values()]
    .map((group) => group.toSorted((a, b) => idle(b) - idle(a)))
    .sort((a, b) => b.length - a.length)
}

async function inParallel<T>(items: readonly T[], limit: number, work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values()
  const worker = async () => {
    for (const item of rest) await work(item)
  }
  await Promise.all(Array.from({ length: limit }, worker))
}
