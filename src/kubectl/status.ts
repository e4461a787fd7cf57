// `kubectl kubeproxy status`: one line a node.

import { formatAge, formatSlowest, type ProxyStatus } from '../diagnose/proxy-status.ts'
import { messageOf } from '../lib/errors.ts'
import type { Cluster } from './cluster.ts'
import { inParallel } from './in-parallel.ts'
import type { ProxyPod } from './proxies.ts'

export interface NodeStatus {
  readonly node: string
  /** Absent: no pod of a kube-proxy runs there. */
  readonly pod?: ProxyPod | undefined
  /** Absent: it is not this program, or did not answer. */
  readonly status?: ProxyStatus | undefined
  /** For people: why there is no status. */
  readonly note?: string | undefined
}

export async function readStatuses(cluster: Cluster, timeoutMs: number): Promise<NodeStatus[]> {
  const [nodes, proxies] = await Promise.all([cluster.nodeNames(), cluster.proxies()])
  return inParallel(nodes, async (node) => {
    const pod = proxies.get(node)
    if (pod === undefined)
      return { node, note: 'no pod of a kube-proxy: k3s, a systemd unit, or another program serves this node' }
    if (pod.kind === 'kube-proxy') return { node, pod, note: `another kube-proxy: ${pod.image}` }
    try {
      const { stdout, stderr } = await cluster.run(pod, ['kube-proxy', 'status', '-o', 'json'], { timeoutMs })
      if (stdout === '') return { node, pod, note: stderr.trim().split('\n').at(-1) ?? 'no answer' }
      return { node, pod, status: (JSON.parse(stdout) as { status: ProxyStatus }).status }
    } catch (error) {
      return { node, pod, note: messageOf(error) }
    }
  })
}

const HEAD = ['NODE', 'MODE', 'VERSION', 'IN SYNC', 'DRIFT', 'REFUSED', 'EJECTED', 'SLOWEST CHANGE']

export function formatStatuses(statuses: readonly NodeStatus[]): string {
  const rows = statuses.map(({ node, status, note = '' }) => {
    if (status === undefined) return [node, '-', '-', note]
    const { mode, version, nowMs, inSyncSinceMs, problems, driftTimes, refused, ejected, slowestChangeSeconds } = status
    return [
      node,
      mode,
      version,
      inSyncSinceMs === null ? `NO: ${problems.join('; ')}` : `for ${formatAge(nowMs - inSyncSinceMs)}`,
      String(driftTimes),
      String(refused),
      ejected.length === 0 ? '0' : `${ejected.length}: ${ejected.slice(0, 2).join(', ')}`,
      formatSlowest(slowestChangeSeconds),
    ]
  })
  const whole = [HEAD, ...rows.filter((row) => row.length === HEAD.length)]
  const widths = HEAD.map((_, i) => Math.max(...whole.map((row) => row[i]!.length), i < 3 ? longest(rows, i) : 0))
  const clean = (text: string) => text.replace(/[\p{Cc}\p{Cf}]/gu, '?')
  return [HEAD, ...rows]
    .map((row) =>
      clean(row.map((cell, i) => (i === row.length - 1 ? cell : cell.padEnd(widths[i]!))).join('  ')).trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('')
}

function longest(rows: readonly (readonly string[])[], i: number): number {
  return Math.max(0, ...rows.map((row) => row[i]?.length ?? 0))
}

/** In a script: whether every node that has this program is in sync. */
export function isHealthy(statuses: readonly NodeStatus[]): boolean {
  return statuses.every(
    ({ pod, status }) =>
      pod?.kind !== 'kube-proxy-ts' || (status !== undefined && status.inSyncSinceMs !== null && status.refused === 0),
  )
}
