// How other commands ask a running sandbox: HTTP over a socket in its folder.

import { rmSync } from 'node:fs'
import { request, type Server } from 'node:http'
import { messageOf } from '../../../../src/lib/errors.ts'
import { createHttpServer, jsonOf, listenAt, requestListener } from '../../../../src/serve/http-server.ts'

export interface Place {
  readonly kind: 'pod' | 'node' | 'machine' | 'control-plane'
  readonly name: string
  readonly netns: string
  readonly hostname: string | undefined
  /** Files that take the place of the machine's. */
  readonly files: readonly { readonly source: string; readonly target: string }[]
  readonly env: Readonly<Record<string, string>>
}

export interface NodeStatus {
  readonly name: string
  readonly addresses: readonly string[]
  readonly podRanges: readonly string[]
  readonly mode: string
  readonly proxyPid: number | undefined
  readonly restarts: number
  readonly health: string
}

export interface PodStatus {
  readonly name: string
  readonly namespace: string
  readonly node: string
  readonly addresses: readonly string[]
}

export interface SandboxStatus {
  readonly name: string
  readonly pid: number
  readonly upSeconds: number
  readonly apiServer: string
  readonly kubeconfig: string
  readonly nodes: readonly NodeStatus[]
  readonly pods: readonly PodStatus[]
}

export interface Controls {
  status(): Promise<SandboxStatus>
  /** A place by its name; what is wrong with the name otherwise. */
  find(name: string): Place | { readonly problem: string }
  /** Rejects when the node cannot run in that mode. */
  setMode(node: string, mode: string): Promise<void>
  setApiServerAway(isAway: boolean): void
}

export async function serveControls(socketPath: string, controls: Controls): Promise<Server> {
  const server = createHttpServer(
    requestListener(
      async ({ url = '/' }) => jsonOf(200, await answer(url, controls)),
      (error) => jsonOf(500, { problem: messageOf(error) }),
    ),
  )
  rmSync(socketPath, { force: true })
  await listenAt(server, { path: socketPath })
  return server
}

async function answer(path: string, controls: Controls): Promise<unknown> {
  if (path === '/status') return controls.status()
  const [, where] = /^\/api-server\/(away|back)$/.exec(path) ?? []
  if (where !== undefined) {
    controls.setApiServerAway(where === 'away')
    return {}
  }
  const [, node, mode] = /^\/nodes\/([^/]+)\/mode\/([^/]+)$/.exec(path) ?? []
  if (node !== undefined && mode !== undefined) {
    await controls.setMode(decodeURIComponent(node), decodeURIComponent(mode))
    return {}
  }
  const name = /^\/places\/(.+)$/.exec(path)?.[1]
  return name === undefined ? { problem: 'no such question' } : controls.find(decodeURIComponent(name))
}

export function askStatus(socketPath: string): Promise<SandboxStatus> {
  return ask(socketPath, '/status') as Promise<SandboxStatus>
}

export function askPlace(socketPath: string, name: string): Promise<ReturnType<Controls['find']>> {
  return ask(socketPath, `/places/${encodeURIComponent(name)}`) as Promise<ReturnType<Controls['find']>>
}

export async function askForApiServer(socketPath: string, where: 'away' | 'back'): Promise<void> {
  await ask(socketPath, `/api-server/${where}`)
}

export async function askForMode(socketPath: string, node: string, mode: string): Promise<void> {
  const path = `/nodes/${encodeURIComponent(node)}/mode/${encodeURIComponent(mode)}`
  const { problem } = (await ask(socketPath, path, 60_000)) as { problem?: string }
  if (problem !== undefined) throw new Error(problem)
}

function ask(socketPath: string, path: string, withinMs = 5000): Promise<unknown> {
  return new Promise((resolve, reject) => {
    // A connection of its own: the sandbox closes one that is kept, perhaps at the moment in which it is used again.
    const asked = request({ socketPath, path, timeout: withinMs, agent: false }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve(JSON.parse(body)))
    })
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${withinMs / 1000} s`)))
    asked.on('error', reject)
    asked.end()
  })
}
