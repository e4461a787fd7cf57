import { describe, expect, test } from 'vitest'
import { decodeFamilies } from '../../test/support/decode-families.ts'
import { turnsDuring } from '../../test/support/turns.ts'
import { nextTurn } from '../lib/next-turn.ts'
import { modeNamed } from '../modes/all.ts'
import { createMetrics, type Metrics, type MetricsOptions } from './metrics.ts'
import { nfacctMetrics } from './kube-proxy.ts'
import { Metric } from './registry.ts'

const build = { major: '1', minor: '37', version: 'v1.37.0', commit: 'abc', treeState: '', buildDate: '' }

function aProxy(options: Partial<MetricsOptions> = {}): Metrics {
  return createMetrics({ shown: modeNamed('nftables').metrics, build, ...options })
}

/** The metrics on the page once every one of them has been written to. */
function namesIn(mode: string): string[] {
  const metrics = aProxy({ shown: modeNamed(mode).metrics })
  for (const metric of Object.values(metrics)) {
    if (metric instanceof Metric) (metric.with as (...values: string[]) => unknown).call(metric, 'a', 'b', 'c')
  }
  return [...metrics.text().matchAll(/^# TYPE kubeproxy_(\S+)/gm)].map(([, name]) => name!)
}

const inEveryMode = [
  'conntrack_reconciler_deleted_entries_total',
  'conntrack_reconciler_sync_duration_seconds',
  'network_programming_duration_seconds',
  'proxy_healthz_total',
  'proxy_livez_total',
  'sync_proxy_rules_duration_seconds',
  'sync_proxy_rules_endpoint_changes_pending',
  'sync_proxy_rules_endpoint_changes_total',
  'sync_proxy_rules_last_queued_timestamp_seconds',
  'sync_proxy_rules_last_timestamp_seconds',
  'sync_proxy_rules_no_local_endpoints_total',
  'sync_proxy_rules_service_changes_pending',
  'sync_proxy_rules_service_changes_total',
]
const partial = ['sync_full_proxy_rules_duration_seconds', 'sync_partial_proxy_rules_duration_seconds']
const nftables = [
  ...partial,
  'sync_proxy_rules_nftables_sync_failures_total',
  'sync_proxy_rules_nftables_cleanup_failures_total',
]

describe('createMetrics()', () => {
  test.each([
    ['nftables', nftables],
    [
      'iptables',
      [
        ...partial,
        'sync_proxy_rules_iptables_restore_failures_total',
        'sync_proxy_rules_iptables_partial_restore_failures_total',
        'sync_proxy_rules_iptables_total',
        'sync_proxy_rules_iptables_last',
      ],
    ],
    // kube-proxy's ipvs mode also counts failures of iptables-restore, which ours does not use.
    ['ipvs', []],
    ['userspace', []],
  ])('in mode %s shows the metrics that kube-proxy shows there', (mode, more) => {
    expect(namesIn(mode)).toEqual([...inEveryMode, ...more].sort())
  })

  test('page() has all that text() has, in parts with turns of other work in between', async () => {
    const metrics = aProxy()
    for (let i = 0; i < 8192; i++) metrics.trafficBytes.with(`default/service-${i}:http`, 'sent').inc(i)
    const { result: parts, turns } = await turnsDuring(() => metrics.page())
    // Without what the process uses, which is more each time.
    const ofProxy = (text: string) => text.match(/^(# )?(HELP |TYPE )?kube.*$/gm)
    expect(ofProxy(Buffer.concat(parts).toString())).toEqual(ofProxy(metrics.text()))
    expect(parts.length).toBeGreaterThan(8)
    expect(turns).toBeGreaterThanOrEqual(parts.length - 1)
  })

  test('page() has the same in the protobuf format, with turns of other work in between', async () => {
    const metrics = aProxy()
    for (let i = 0; i < 8192; i++) metrics.trafficBytes.with(`default/service-${i}:http`, 'sent').inc(i)
    metrics.syncDuration.with('IPv4').observe(0.002)
    const { result: parts, turns } = await turnsDuring(() => metrics.page({ format: 'protobuf' }))
    const families = decodeFamilies(Buffer.concat(parts))
    expect(families.map(({ name }) => name)).toEqual(
      [...metrics.text().matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name),
    )
    expect(families.find(({ name }) => name === 'kubeproxyts_traffic_bytes_total')!.metrics).toHaveLength(8192)
    // 700 kB, 64 at a time.
    expect(turns).toBeGreaterThan(8)
  })

  test.each([true, false])('page() has native buckets where they are wanted: %s', async (nativeHistograms) => {
    const metrics = aProxy({ nativeHistograms })
    metrics.syncDuration.with('IPv4').observe(0.002)
    const names = new Set(['kubeproxy_sync_proxy_rules_duration_seconds'])
    const families = decodeFamilies(Buffer.concat(await metrics.page({ format: 'protobuf', names })))
    expect(families.map(({ name }) => name)).toEqual([...names])
    expect(families[0]!.metrics[0]!.histogram!.native !== undefined).toBe(nativeHistograms)
  })

  test('what is done apart waits for a page that is being made, and the next page for it', async () => {
    const metrics = aProxy()
    const order: string[] = []
    metrics.beforePage(async () => {
      order.push('page begins')
      await nextTurn()
      order.push('page is read')
    })
    const failing = metrics.apart(async () => Promise.reject(new Error('no')))
    const all = [metrics.page(), metrics.apart(() => void order.push('apart')), metrics.page()]
    await expect(failing).rejects.toThrow('no')
    await Promise.all(all)
    expect(order).toEqual(['page begins', 'page is read', 'apart', 'page begins', 'page is read'])
  })

  test('metrics of another mode can be written to and are not shown', () => {
    const metrics = aProxy()
    metrics.iptablesRestoreFailures.with('IPv4').inc()
    expect(metrics.text()).not.toContain('iptables')
  })

  test('histograms have kube-proxy’s buckets', () => {
    const metrics = aProxy()
    metrics.syncDuration.with('IPv4').observe(0)
    metrics.networkProgrammingDuration.with('IPv4').observe(0)
    const bounds = (name: string): string[] =>
      [...metrics.text().matchAll(new RegExp(`^kubeproxy_${name}_bucket\\{ip_family="IPv4",le="(.*)"\\}`, 'gm'))].map(
        ([, bound]) => bound!,
      )
    expect(bounds('sync_proxy_rules_duration_seconds').join(' ')).toBe(
      '0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 +Inf',
    )
    const programming = bounds('network_programming_duration_seconds')
    expect(programming).toHaveLength(81)
    expect(programming.slice(0, 4)).toEqual(['0.25', '0.5', '1', '2'])
    expect(programming.slice(59, 63)).toEqual(['58', '59', '60', '65'])
    expect(programming.slice(-9)).toEqual(['115', '120', '150', '180', '210', '240', '270', '300', '+Inf'])
  })

  test('tells about the process, the build and the feature gates', () => {
    const features = { NFTablesNetlink: { stage: 'BETA', enabled: true }, Other: { stage: '', enabled: false } }
    const text = aProxy({ features }).text()
    const value = (name: string): number => Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)?.[1])
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e7)
    expect(value('process_virtual_memory_bytes')).toBeGreaterThan(value('process_resident_memory_bytes'))
    expect(value('process_cpu_seconds_total')).toBeGreaterThan(0.01)
    expect(Math.abs(value('process_start_time_seconds') - Date.now() / 1000)).toBeLessThan(3600)
    expect(value('process_open_fds')).toBeGreaterThan(2)
    expect(value('process_max_fds')).toBeGreaterThanOrEqual(value('process_open_fds'))
    expect(value('process_virtual_memory_max_bytes')).toBeGreaterThanOrEqual(value('process_virtual_memory_bytes'))
    for (const way of ['receive', 'transmit']) expect(value(`process_network_${way}_bytes_total`)).not.toBeNaN()
    expect(text).toMatch(/^kubernetes_build_info\{.*git_commit="abc".*git_version="v1.37.0".*\} 1$/m)
    expect(text).toContain('kubernetes_feature_enabled{name="NFTablesNetlink",stage="BETA"} 1\n')
    expect(text).toContain('kubernetes_feature_enabled{name="Other",stage=""} 0\n')
  })

  test('sliPage() has the process start time and the health checks until they are reset', async () => {
    const metrics = aProxy()
    const sliText = async () => Buffer.concat(await metrics.sliPage()).toString()
    metrics.healthcheck.with('ping', 'healthz').set(1)
    metrics.healthchecks.with('ping', 'healthz', 'success').inc()
    expect(await sliText()).toContain('kubernetes_healthcheck{name="ping",type="healthz"} 1\n')
    expect(await sliText()).toContain('kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 1\n')
    expect(metrics.text()).not.toContain('healthcheck{')
    metrics.resetSlis()
    expect(await sliText()).toMatch(
      /^# HELP process_start_time_seconds \[ALPHA\] .*\n# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds [\d.]+e\+09\n$/,
    )
  })

  test('register() adds counters that live in the kernel', () => {
    const metrics = aProxy({ shown: modeNamed('iptables').metrics })
    metrics.register(...nfacctMetrics((object) => object.length))
    const text = metrics.text()
    expect(text).toContain('\nkubeproxy_iptables_ct_state_invalid_dropped_packets_total 29\n')
    expect(text).toContain('\nkubeproxy_iptables_localhost_nodeports_accepted_packets_total 27\n')
  })
})
