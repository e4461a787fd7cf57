// The ipvs mode beside ipvsadm, on the kernel with IPVS: everything at once, and one endpoint more.
//   npm run bench:ipvs -- [services ...]
//
// All figures of one line come from one run; compare columns rather than runs. Ends with 1 when a figure that we promise
// is not reached: programming everything takes no longer than `ipvsadm -R` of the same virtual servers, and a change of one
// endpoint a tenth of one call of ipvsadm.

import { execFileSync } from 'node:child_process'
import { IpvsDriver } from '../../src/ipvs/driver.ts'
import { LinkDriver } from '../../src/links/driver.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { systemClock } from '../../src/lib/clock.ts'
import type { ServicePortView } from '../../src/model/types.ts'
import { ipvsPlanner } from '../../src/modes/ipvs/plan/planner.ts'
import { IpvsProgrammer } from '../../src/modes/ipvs/programmer.ts'
import { FamilyAudit } from '../../src/modes/ipvs/table-watch.ts'
import { formatServers } from '../../src/ipvs/format.ts'
import type { IpvsOp, PlannedServer } from '../../src/ipvs/types.ts'
import { aNodeView } from '../support/arbitrary-views.ts'
import { aClusterIpView } from '../support/cluster-ip-view.ts'
import { median, table } from './figures.ts'
import { setLoopbackUp } from './netns.ts'

const ENDPOINTS = 10
const CHANGES = 100
const CALLS = 15

const node = aNodeView()

function view(service: number, endpoints = ENDPOINTS): ServicePortView {
  const net = `10.${64 + (service >> 10)}.${(service >> 2) & 255}`
  const backends = Array.from({ length: endpoints }, (_, i) => `${net}.${((service & 3) << 6) + i + 1}`)
  return aClusterIpView(`10.96.${service >> 8}.${service & 255}`, backends)
}

function plan(views: readonly ServicePortView[]): PlannedServer[] {
  const settings = { scheduler: 'rr', nodePortAddresses: [] }
  return views.flatMap((each) => ipvsPlanner.servers(node, each, settings))
}

async function timedAsync(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

function timed(work: () => void): number {
  const start = performance.now()
  work()
  return performance.now() - start
}

/** A network namespace of its own for what is measured next. */
function freshNetwork(): void {
  unshareNetwork()
  setLoopbackUp()
}

function openProgrammer(): IpvsProgrammer {
  return new IpvsProgrammer({
    family: 4,
    servers: new IpvsDriver(),
    link: new LinkDriver(ipvsPlanner.link),
    rules: new NftablesDriver({ family: 'ip', table: ipvsPlanner.table }),
    clock: systemClock,
    scheduler: 'rr',
    excludeCidrs: [],
    drainLimitMs: 1000,
    audit: new FamilyAudit(),
    onDrained: () => {},
    onError: (error) => {
      throw error
    },
  })
}

/** Virtual servers and destinations alone, as ipvsadm -R reads them. */
function measureRestore(servers: readonly PlannedServer[]): { oursMs: number; ipvsadmMs: number } {
  const ops = servers.flatMap(({ server, destinations }): IpvsOp[] => [
    { op: 'addServer', server },
    ...destinations.map((destination): IpvsOp => ({ op: 'addDestination', server, destination })),
  ])
  freshNetwork()
  const driver = new IpvsDriver()
  const oursMs = timed(() => driver.apply(ops))
  driver.close()
  freshNetwork()
  const input = formatServers(servers)
  const ipvsadmMs = timed(() => execFileSync('ipvsadm', ['-R'], { input }))
  return { oursMs, ipvsadmMs }
}

async function measureChanges(views: readonly ServicePortView[]) {
  freshNetwork()
  const programmer = openProgrammer()
  const wholeMs = await timedAsync(() => programmer.syncAll(node, views))
  const restartMs = await timedAsync(() => openProgrammer().syncAll(node, views))
  const added: number[] = []
  const removed: number[] = []
  for (let i = 0; i < CHANGES; i++) {
    const service = (i * 7919) % views.length
    const [before, after] = [views[service]!, view(service, ENDPOINTS + 1)]
    added.push(await timedAsync(() => programmer.sync(node, [{ name: before.name, before, after }])))
    removed.push(await timedAsync(() => programmer.sync(node, [{ name: before.name, before: after, after: before }])))
  }
  const calls: number[] = []
  for (let i = 0; i < CALLS; i++) {
    const args = ['-a', '-t', '10.96.0.0:80', '-r', `10.99.0.${i + 1}:80`, '-m']
    calls.push(timed(() => execFileSync('ipvsadm', args)))
  }
  programmer.close()
  return { wholeMs, restartMs, addMs: median(added), removeMs: median(removed), callMs: median(calls) }
}

if (process.getuid?.() !== 0) throw new Error('Cannot measure: needs root, to make a network namespace')

const sizes = process.argv.slice(2).map(Number)
const rows: string[][] = []
let missed = 0
for (const services of sizes.length > 0 ? sizes : [1000]) {
  const views = Array.from({ length: services }, (_, service) => view(service))
  const { oursMs, ipvsadmMs } = measureRestore(plan(views))
  const { wholeMs, restartMs, addMs, removeMs, callMs } = await measureChanges(views)
  const changeMs = Math.max(addMs, removeMs)
  if (oursMs > ipvsadmMs || changeMs > callMs / 10) missed++
  rows.push([
    String(services),
    ...[oursMs, ipvsadmMs, wholeMs, restartMs].map((ms) => ms.toFixed(0)),
    ...[addMs, removeMs, callMs].map((ms) => ms.toFixed(2)),
    `${(ipvsadmMs / oursMs).toFixed(1)} / ${(callMs / changeMs).toFixed(0)}`,
  ])
}
console.log(
  table(
    [
      'services',
      'servers, ms',
      'ipvsadm -R, ms',
      'with rules and addresses, ms',
      'restart, ms',
      'endpoint added, ms',
      'removed, ms',
      'one ipvsadm, ms',
      'times faster',
    ],
    rows,
  ),
)
process.exitCode = missed === 0 ? 0 : 1
