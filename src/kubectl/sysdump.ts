// `kubectl kubeproxy sysdump`: all that a report of a fault needs, as one archive, without secrets.

import { writeFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import { messageOf } from '../lib/errors.ts'
import type { ArchivedFile } from './archive.ts'
import { formatArchive } from './archive.ts'
import type { Cluster } from './cluster.ts'
import { inParallel } from './in-parallel.ts'
import { PROXY_SELECTOR, type ProxyPod } from './proxies.ts'
import { redact } from './redact.ts'
import { formatStatuses, readStatuses } from './status.ts'

const LOG_LINES = 5000

/** Of each node that runs this program. What a container does not have is an error in the archive, and no more. */
const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  // State and decisions, configuration, metrics.
  'status.json': ['kube-proxy', 'status', '-o', 'all'],
  'plan.txt': ['kube-proxy', 'plan'],
  'check.txt': ['kube-proxy', 'check'],
  'doctor.json': ['kube-proxy', 'doctor', '-o', 'json'],
  'iptables-save.txt': ['iptables-save'],
  'ip6tables-save.txt': ['ip6tables-save'],
}

export async function collectSysdump(
  cluster: Cluster,
  { namespace, timeoutMs }: { readonly namespace: string; readonly timeoutMs: number },
): Promise<ArchivedFile[]> {
  const files: ArchivedFile[] = []
  const errors: string[] = []
  const add = (path: string, text: string) => files.push({ path, content: Buffer.from(redact(text)) })
  const attempt = async (path: string, read: () => Promise<string>) => {
    try {
      add(path, await read())
    } catch (error) {
      errors.push(`${path}: ${messageOf(error)}`)
    }
  }
  const inNamespace = `namespaces/${encodeURIComponent(namespace)}`
  const selector = `labelSelector=${encodeURIComponent(PROXY_SELECTOR)}`
  await Promise.all([
    attempt('cluster/version.json', () => cluster.text({ path: '/version' })),
    attempt('cluster/status.txt', async () => formatStatuses(await readStatuses(cluster, timeoutMs))),
    ...[
      ['nodes', '/api/v1/nodes'],
      ['services', '/api/v1/services'],
      ['endpointslices', '/apis/discovery.k8s.io/v1/endpointslices'],
      ['proxy-pods', `/api/v1/${inNamespace}/pods?${selector}`],
      ['daemonsets', `/apis/apps/v1/${inNamespace}/daemonsets?${selector}`],
      ['events', `/api/v1/${inNamespace}/events`],
    ].map(([name, path]) =>
      attempt(`cluster/${name}.json`, async () => lines((await cluster.list<object>(path!)).map(withoutNoise))),
    ),
    // Not the ConfigMap as a whole: it has a kubeconfig, too.
    ...['kube-proxy', 'kube-proxy-ts'].map((name) =>
      attempt(`cluster/configmap-${name}.txt`, async () => {
        const { data = {} } = await cluster.get<{ data?: Record<string, string> }>(
          `/api/v1/${inNamespace}/configmaps/${name}`,
        )
        return Object.entries(data)
          .filter(([key]) => !key.includes('kubeconfig'))
          .map(([key, value]) => `# ${key}\n${value}\n`)
          .join('\n')
      }),
    ),
  ])
  const proxies = [...(await cluster.proxies()).values()]
  await inParallel(proxies, async (pod) => {
    await attempt(`nodes/${pod.node}/log.txt`, () => readLog(cluster, pod))
    if (pod.kind !== 'kube-proxy-ts') return
    for (const [name, command] of Object.entries(COMMANDS)) {
      await attempt(`nodes/${pod.node}/${name}`, async () => {
        const { status, stdout, stderr } = await cluster.run(pod, command, { timeoutMs })
        if (stdout === '' && status !== 0) throw new Error(`status ${status}: ${stderr.trim()}`)
        return stdout
      })
    }
  })
  if (errors.length > 0) add('errors.txt', `${errors.sort().join('\n')}\n`)
  return files.sort((a, b) => (a.path < b.path ? -1 : 1))
}

export function writeSysdump(file: string, files: readonly ArchivedFile[], nowMs: number): void {
  writeFileSync(file, gzipSync(formatArchive(files, nowMs / 1000)), { mode: 0o600, flag: 'wx' })
}

function readLog(cluster: Cluster, { namespace, name, container }: ProxyPod): Promise<string> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}/log`
  return cluster.text({
    path: `${path}?container=${encodeURIComponent(container)}&tailLines=${LOG_LINES}`,
    accept: '*/*',
  })
}

function lines(objects: readonly object[]): string {
  return objects.map((object) => `${JSON.stringify(object)}\n`).join('')
}

/** Values of environment variables may be secrets; copies of the whole object, and who wrote which field, help nobody. */
export function withoutNoise(object: object): object {
  return JSON.parse(
    JSON.stringify(object, (key, value: unknown) => {
      if (key === 'managedFields' || key.endsWith('last-applied-configuration')) return undefined
      if (key === 'env' && Array.isArray(value))
        return value.map(({ name, valueFrom }: { name: string; valueFrom?: object }) => ({ name, valueFrom }))
      return value
    }),
  ) as object
}
