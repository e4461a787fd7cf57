// A run: warm up, rest and count; change, break and watch; rest and count again.

import { copyFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../src/lib/errors.ts'
import { Changes, type Change } from './changes.ts'
import { BASE_REPLICAS, Cluster, steadyServices } from './cluster.ts'
import { Faults, type Fault } from './faults.ts'
import { Growth } from './growth.ts'
import { Ledger } from './ledger.ts'
import type { SoakOptions } from './options.ts'
import { Random } from './random.ts'
import { Findings, formatReport, type Report } from './report.ts'
import { Traffic } from './traffic.ts'

const LINE_EVERY_MS = 10_000
const MAX_WARM_UP_MS = 60_000
const PAUSE_MS = 500
/** One step in so many is a fault; the others are changes. */
const FAULT_EVERY = 4
const MAX_AT_ONCE = 4

export async function soak(root: string, options: SoakOptions): Promise<Report> {
  await using cluster = await Cluster.start(root, options)
  const ledger = new Ledger()
  const growth = new Growth(cluster, options.mode)
  const findings = new Findings(ledger, growth)
  const random = new Random(options.seed)
  const churn = Array.from({ length: options.services - steadyServices.length - 2 }, (_, i) => `churn-${i}`)
  const changes = new Changes(cluster, ledger, random, { mode: options.mode, churn })
  const faults = new Faults(cluster, ledger, random, options.mode)
  const traffic = new Traffic(cluster, ledger, options.seed + 1)
  const lengthMs = options.minutes * 60_000
  const warmUpMs = Math.min(MAX_WARM_UP_MS, lengthMs / 4)

  await traffic.start()
  const ticker = setInterval(() => {
    void growth.sample().then(() => console.log(findings.line()))
  }, LINE_EVERY_MS)
  try {
    // What the first change of the mode leaves for good, as the kernel's own tables of iptables, is no growth.
    await breakIt(faults.changeMode())
    await steps(warmUpMs)
    await rest()
    growth.kernelAtStart = await growth.countKernel()
    growth.endWarmUp()
    await growth.sampleAtRest()
    await steps(lengthMs - warmUpMs)
    await rest()
    await growth.sampleAtRest()
    growth.kernelAtEnd = await growth.countKernel()
  } finally {
    clearInterval(ticker)
    await traffic.stop()
  }
  const report = findings.report(options)
  console.log(formatReport(report, ledger.examples))
  if (report.failures.length > 0 && options.json !== undefined) keepLogs(options.json)
  return report

  /** What the proxies said, beside the report; the sandbox takes its folder away. */
  function keepLogs(json: string): void {
    for (const { name } of cluster.nodes) copyFileSync(cluster.sandbox.path(`${name}.log`), `${json}.${name}.log`)
  }

  async function steps(forMs: number): Promise<void> {
    const end = performance.now() + forMs
    while (performance.now() < end) {
      if (random.between(1, FAULT_EVERY) === 1) await breakIt(faults.pick())
      else await Promise.all(changes.pick(random.between(1, MAX_AT_ONCE)).map(change))
      await sleep(PAUSE_MS)
    }
  }

  async function rest(): Promise<void> {
    try {
      await changes.rest(BASE_REPLICAS, churn)
    } catch (error) {
      note(`rest: ${messageOf(error)}`)
    }
  }

  async function change({ name, service, make }: Change): Promise<void> {
    const kind = name.replace(/ \d+$/, '')
    count(findings.changes, kind)
    ledger.note(`${service}: ${name}`)
    try {
      findings.converged(kind, await make())
      await traffic.follow(service)
    } catch (error) {
      note(`${service}: ${name}: ${messageOf(error)}`)
    }
  }

  async function breakIt({ name, cause }: Fault): Promise<void> {
    count(findings.faults, name.replace(/\d+ s$/, 'some seconds'))
    console.log(`${seconds()} s: ${name}`)
    ledger.note(name)
    try {
      await cause()
    } catch (error) {
      note(`${name}: ${messageOf(error)}`)
    }
  }

  function note(what: string): void {
    const where = `at ${seconds()} s, ${what}`
    findings.unconverged.push(where)
    console.log(`NOT CONVERGED ${where}`)
  }

  function seconds(): number {
    return Math.round((performance.now() - ledger.startedMs) / 1000)
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
