// A real Prometheus scrapes /metrics: as text, and as protobuf with native histograms.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { debianProgram } from '../support/debian-program.ts'
import { eventually } from '../support/eventually.ts'
import { httpGet } from '../support/netns/probe.ts'
import { metricsPort, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const folder = mkdtempSync(join(tmpdir(), 'prometheus-'))
const cleanup = new Cleanup()
const ports = { classic: 19_090, native: 19_091 }
let rig: Rig

beforeAll(async () => {
  const prometheus = join(debianProgram('prometheus', 'prometheus'), 'prometheus')
  rig = cleanup.use(await openRig())
  const { node } = rig.network
  cleanup.use(await startProxy({ netns: node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig }))
  const targets = [{ targets: [`127.0.0.1:${metricsPort}`] }]
  const job = { job_name: 'kube-proxy', scrape_interval: '1s', scrape_timeout: '1s', static_configs: targets }
  const config = join(folder, 'prometheus.json')
  writeFileSync(config, JSON.stringify({ scrape_configs: [job] }))
  for (const [kind, port] of Object.entries(ports)) {
    const child = node.spawn(
      [
        prometheus,
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, kind)}`,
        `--web.listen-address=127.0.0.1:${port}`,
        ...(kind === 'native' ? ['--enable-feature=native-histograms'] : []),
      ],
      { stdio: 'ignore' },
    )
    const ended = new Promise((resolve) => child.once('exit', resolve))
    cleanup.defer(async () => {
      child.kill('SIGKILL')
      await ended
    })
  }
  const service = aService({})
  rig.cluster.put(service, aSlice(service, ['localB']))
  await rig.settled()
})
afterAll(async () => {
  await cleanup[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

type Value = readonly [time: number, value: string]

interface Found {
  readonly metric: Readonly<Record<string, string>>
  readonly value?: Value
  readonly histogram?: readonly [time: number, histogram: { readonly count: string; readonly buckets: unknown[] }]
}

async function query(kind: keyof typeof ports, expression: string): Promise<readonly Found[]> {
  const path = `/api/v1/query?query=${encodeURIComponent(expression)}`
  const answer = await httpGet(rig.network.node, { address: '127.0.0.1', port: ports[kind] }, { path })
  if (answer?.status !== 200) return []
  return (JSON.parse(answer.body) as { data: { result: Found[] } }).data.result
}

/** What the expression finds once, when it does: on a busy machine a scrape may fail, and nothing is there until the next. */
async function oneOf(kind: keyof typeof ports, expression: string): Promise<Found> {
  let found: readonly Found[] = []
  await eventually(`Prometheus (${kind}) answers ${expression}`, async () => {
    found = await query(kind, expression)
    return found.length === 1 ? undefined : JSON.stringify(found)
  })
  return found[0]!
}

async function valueOf(kind: keyof typeof ports, expression: string): Promise<number> {
  const { value } = await oneOf(kind, expression)
  return Number(value?.[1])
}

const name = 'kubeproxy_sync_proxy_rules_duration_seconds'

test.for(Object.keys(ports) as (keyof typeof ports)[])('it takes every sample: %s', async (kind) => {
  expect(await valueOf(kind, 'up == 1')).toBe(1)
  expect(await valueOf(kind, 'max_over_time(scrape_samples_scraped[1m])')).toBeGreaterThan(50)
  expect(await valueOf(kind, 'kubeproxy_sync_proxy_rules_service_changes_total')).toBeGreaterThan(0)
})

test('text has classic buckets', async () => {
  const median = await valueOf('classic', `histogram_quantile(0.5, ${name}_bucket{ip_family="IPv4"})`)
  expect(median).toBeGreaterThan(0)
  expect(await query('classic', name)).toEqual([])
})

test('protobuf has native buckets, of which Prometheus knows the quantiles', async () => {
  const series = `${name}{ip_family="IPv4"}`
  const [low, median, high] = [
    await valueOf('native', `histogram_quantile(0, ${series})`),
    await valueOf('native', `histogram_quantile(0.5, ${series})`),
    await valueOf('native', `histogram_quantile(1, ${series})`),
  ]
  expect(low).toBeGreaterThan(0)
  expect(median).toBeGreaterThanOrEqual(low)
  expect(high).toBeGreaterThanOrEqual(median)
  const mean = await valueOf('native', `histogram_sum(${series}) / histogram_count(${series})`)
  expect(mean).toBeGreaterThanOrEqual(low)
  expect(mean).toBeLessThanOrEqual(high)
  const { histogram } = await oneOf('native', series)
  expect(histogram?.[1].buckets.length).toBeGreaterThan(0)
  expect(await query('native', `${name}_bucket`)).toEqual([])
})
