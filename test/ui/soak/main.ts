// npm run soak:ui -- --minutes 10: the page, looked at for long, while a cluster of 300 pods and 50 services changes all the time. The
// memory of the page and of the sandbox must not grow. Ends with a table, and with status 1 when something grew.

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { CDPSession } from 'playwright-core'
import { openPage } from '../support/browser.ts'
import { startSandboxPage, type SandboxPage } from '../support/sandbox-page.ts'

const PODS = 300
const SERVICES = 50
const VIEWS = ['map', 'service', 'packet', 'changes', 'hands-on', 'map'] as const

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
const minutes = Number(values.minutes)
if (!(minutes > 0)) throw new Error(`Cannot run for ${values.minutes} minutes: must be a number above 0`)

interface Sample {
  readonly atS: number
  readonly heapMb: number
  /** Without those of the map: each pod that fails at the moment is a box of its own, with a line from every service. */
  readonly nodes: number
  /** Boxes on the map: groups, and pods that are drawn by themselves. */
  readonly pods: number
  readonly listeners: number
  readonly rssMb: number
}

await using stage = await startSandboxPage('--nodes', '3')
await fill(stage)
const { page, complaints } = await openPage(stage.browser, stage.url)
const session = await page.context().newCDPSession(page)
await session.send('Performance.enable')
const startedMs = performance.now()
const samples: Sample[] = []
let changes = 0
const over = new AbortController()
const changing = change()
for (let turn = 0; performance.now() - startedMs < minutes * 60_000; turn++) {
  const view = VIEWS[turn % VIEWS.length]!
  await page.evaluate(`location.hash = '#/${view}'`)
  if (view === 'packet') await page.getByRole('button', { name: 'Explain' }).click()
  await sleep(2500)
  // The same view each time: the map.
  if (turn % VIEWS.length !== VIEWS.length - 1) continue
  const sample = await measure(session)
  samples.push(sample)
  console.log(describe(sample))
}
over.abort()
await changing
report()

/** Services that lead to all pods, a third of them, one. */
async function fill({ sandbox }: SandboxPage): Promise<void> {
  await sandbox.api.patch('/apis/apps/v1/namespaces/default/deployments/whoami', { spec: { replicas: PODS } })
  for (let i = 1; i < SERVICES; i++) {
    await sandbox.api.create('/api/v1/namespaces/default/services', {
      metadata: { name: `web-${i}` },
      spec: { selector: { app: 'whoami' }, ports: [{ port: 80, targetPort: 3000 }] },
    })
  }
}

/** A pod goes and another comes, a policy changes, a client asks: two or three things a second. */
async function change(): Promise<void> {
  const { sandbox } = stage
  let names: string[] = []
  while (!over.signal.aborted) {
    if (names.length === 0) {
      const { items } = await sandbox.api.get('/api/v1/namespaces/default/pods')
      names = items.slice(0, 10).map(({ metadata }: { metadata: { name: string } }) => metadata.name)
    }
    const pod = changes % 3 === 0 ? names.shift() : undefined
    if (pod !== undefined) await sandbox.api.delete(`/api/v1/namespaces/default/pods/${pod}`).catch(() => {})
    const internalTrafficPolicy = changes % 2 === 0 ? 'Local' : 'Cluster'
    await sandbox.api.patch(`/api/v1/namespaces/default/services/web-${1 + (changes % (SERVICES - 1))}`, {
      spec: { internalTrafficPolicy },
    })
    changes++
    await sleep(500)
  }
}

/** After the garbage was collected. */
async function measure(session: CDPSession): Promise<Sample> {
  await session.send('HeapProfiler.collectGarbage')
  await session.send('HeapProfiler.collectGarbage')
  const { metrics } = await session.send('Performance.getMetrics')
  const metric = (name: string) => metrics.find((each) => each.name === name)?.value ?? 0
  const status = readFileSync(`/proc/${stage.sandbox.pid}/status`, 'utf8')
  return {
    atS: Math.round((performance.now() - startedMs) / 1000),
    heapMb: metric('JSHeapUsedSize') / 1e6,
    nodes: metric('Nodes') - (await page.evaluate<number>('document.querySelectorAll(".map *").length')),
    pods: await page.locator('.map .box.pod, .map .box.group').count(),
    listeners: metric('JSEventListeners'),
    rssMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1000,
  }
}

function describe({ atS, heapMb, nodes, pods, listeners, rssMb }: Sample): string {
  return `${atS} s: JavaScript heap ${heapMb.toFixed(1)} MB, ${nodes} DOM nodes besides the map, ${pods} boxes of pods, ${listeners} listeners; the sandbox ${rssMb.toFixed(0)} MB`
}

/**
 * What is filled once - code that was compiled, the list of changes, the history of the API server - is filled in the first fifth. From
 * then on the typical figure may not rise by more than this: a tenth, and what one sample differs from the next by.
 */
function report(): void {
  const judge = (what: string, of: (sample: Sample) => number, room: number) => {
    const [before, after] = [median(partOf(0.2, 0.4).map(of)), median(partOf(0.8, 1).map(of))]
    const most = before * 1.1 + room
    const isFlat = after <= most
    console.log(
      `${isFlat ? 'flat ' : 'GREW '} ${what}: ${before.toFixed(1)} in the second fifth of the time, ${after.toFixed(1)} in the last; at most ${most.toFixed(1)}`,
    )
    return isFlat
  }
  console.log(`${minutes} minutes, ${changes} rounds of changes, ${samples.length} samples`)
  const areFlat = [
    judge('JavaScript heap, MB', ({ heapMb }) => heapMb, 1),
    judge('DOM nodes', ({ nodes }) => nodes, 100),
    judge('event listeners', ({ listeners }) => listeners, 10),
    judge('RSS of the sandbox, MB', ({ rssMb }) => rssMb, 10),
  ]
  for (const complaint of new Set(complaints)) console.log(`complained: ${complaint}`)
  if (!areFlat.every(Boolean)) process.exitCode = 1
}

/** The samples of a part of the time. */
function partOf(from: number, to: number): Sample[] {
  const endS = samples.at(-1)?.atS ?? 0
  return samples.filter(({ atS }) => atS >= endS * from && atS <= endS * to)
}

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN
}
