// The cluster, as the user's kubeconfig reaches it.

import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { readKubeconfig } from '../kube/access/kubeconfig.ts'
import type { ApiRequest, UpgradingClient } from '../kube/api-client.ts'
import { ApiError } from '../kube/api-error.ts'
import { openExec } from '../kube/exec.ts'
import { Transport } from '../kube/transport.ts'
import { UsageError } from '../lib/command.ts'
import { silentLogger } from '../lib/log.ts'
import { type Pod, PROXY_SELECTOR, proxiesByNode, type ProxyPod } from './proxies.ts'

export interface RunningPod {
  readonly namespace: string
  readonly name: string
  readonly container: string
}

export interface ExecOptions {
  readonly onStdout: (bytes: Buffer) => void
  readonly onStderr: (bytes: Buffer) => void
  readonly stdin?: string
  readonly signal?: AbortSignal | undefined
}

const PAGE = 500
/** Characters of input in a message. */
const PORTION = 16 * 1024

export class Cluster {
  readonly #client: UpgradingClient
  readonly #namespace: string

  constructor({ kubeconfig, context, namespace }: { kubeconfig: string; context: string; namespace: string }) {
    this.#namespace = namespace
    this.#client = new Transport({
      access: readKubeconfig({ path: kubeconfigPath(kubeconfig), context }),
      userAgent: 'kubectl-kubeproxy',
      accept: 'application/json',
      limits: { qps: -1, burst: 0 },
      log: silentLogger,
    })
  }

  /** For what asks by itself. It is closed with this one. */
  get client(): UpgradingClient {
    return this.#client
  }

  get server(): string {
    return this.#client.server
  }

  async get<T>(path: string): Promise<T> {
    return JSON.parse(await this.text({ path })) as T
  }

  /** All objects of a list, in parts. */
  async list<T>(path: string): Promise<T[]> {
    const items: T[] = []
    let next = ''
    do {
      const more = next === '' ? '' : `&continue=${encodeURIComponent(next)}`
      const page = await this.get<{ items?: T[]; metadata?: { continue?: string } }>(
        `${path}${path.includes('?') ? '&' : '?'}limit=${PAGE}${more}`,
      )
      items.push(...(page.items ?? []))
      next = page.metadata?.continue ?? ''
    } while (next !== '')
    return items
  }

  async text(request: ApiRequest): Promise<string> {
    const response = await this.#client.request(request)
    let text = ''
    response.setEncoding('utf8')
    for await (const chunk of response) text += chunk as string
    return text
  }

  async proxies(): Promise<Map<string, ProxyPod>> {
    const path = `/api/v1/namespaces/${encodeURIComponent(this.#namespace)}/pods`
    return proxiesByNode(await this.list<Pod>(`${path}?labelSelector=${encodeURIComponent(PROXY_SELECTOR)}`))
  }

  async nodeNames(): Promise<string[]> {
    const nodes = await this.list<{ metadata: { name: string } }>('/api/v1/nodes')
    return nodes.map(({ metadata }) => metadata.name).sort()
  }

  /** Undefined when there is no such pod. */
  async findPod(namespace: string, name: string): Promise<Pod | undefined> {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`
    try {
      return await this.get<Pod>(path)
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return undefined
      throw error
    }
  }

  /** Runs a command in a pod and answers its exit status. Rejects when it could not run, or its connection broke. */
  async exec(pod: RunningPod, command: readonly string[], options: ExecOptions): Promise<number> {
    const { stdin, onStdout, onStderr, signal } = options
    const { namespace, name, container } = pod
    const session = await openExec(this.#client, {
      namespace,
      pod: name,
      container,
      command,
      onStdout,
      onStderr,
      ...(stdin === undefined ? {} : { stdin: true }),
      ...(signal === undefined ? {} : { signal }),
    })
    const giveUp = () => session.close()
    signal?.addEventListener('abort', giveUp, { once: true })
    if (stdin !== undefined) {
      for (let at = 0; at < stdin.length; at += PORTION) session.write(stdin.slice(at, at + PORTION))
      session.endInput()
    }
    const { exitCode, message } = await session.ended
    signal?.removeEventListener('abort', giveUp)
    if (exitCode === undefined) throw new Error(`Cannot run ${command[0]} in pod ${namespace}/${name}: ${message}`)
    return exitCode
  }

  /** The same, with all that it wrote. */
  async run(
    pod: RunningPod,
    command: readonly string[],
    { stdin, timeoutMs = 30_000 }: { readonly stdin?: string; readonly timeoutMs?: number } = {},
  ): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
    const [out, error]: [Buffer[], Buffer[]] = [[], []]
    const status = await this.exec(pod, command, {
      // The memory is the connection's: it is written to again.
      onStdout: (bytes) => out.push(Buffer.from(bytes)),
      onStderr: (bytes) => error.push(Buffer.from(bytes)),
      ...(stdin === undefined ? {} : { stdin }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    return { status, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(error).toString() }
  }

  close(): void {
    this.#client.close()
  }
}

/** As kubectl finds it. */
function kubeconfigPath(flag: string): string {
  if (flag !== '') return flag
  const given = (process.env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '')
  if (given.length > 1)
    throw new UsageError(
      `KUBECONFIG names ${given.length} files, and only one can be read: use --kubeconfig, or kubectl config view --flatten --raw`,
    )
  const path = given[0] ?? join(homedir(), '.kube', 'config')
  if (!existsSync(path)) throw new UsageError(`there is no kubeconfig at ${path}: use --kubeconfig or KUBECONFIG`)
  return path
}
