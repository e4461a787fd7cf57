// The API server of the sandbox: a store, the rules of the API around it, and HTTPS in front.

import { randomBytes } from 'node:crypto'
import { bootstrap } from './bootstrap.ts'
import { ClusterIps } from './allocation/cluster-ips.ts'
import { closeServer, createHttpServer, listenAt } from '../../../../src/serve/http-server.ts'
import { createHandler, createUpgradeHandler } from './http/handler.ts'
import { formatKubeconfig } from './kubeconfig.ts'
import { issueAuthority, issueServing } from './certificate.ts'
import { joinHostPort } from '../../../../src/lib/ip.ts'
import { NodePorts } from './allocation/node-ports.ts'
import { proxyRules } from './http/users.ts'
import { Registry } from './registry/registry.ts'
import { serviceAllocator } from './allocation/service-allocator.ts'
import { ipAddresses, serviceCidrs, services } from './resources/table.ts'
import { silentLogger } from '../../../../src/lib/log.ts'
import { Store } from './store/store.ts'
import { systemClock } from '../../../../src/lib/clock.ts'
import type { Socket } from 'node:net'
import type { Api } from './http/exchange.ts'
import type { Clock } from '../../../../src/lib/clock.ts'
import type { KeyAndCertificate } from './certificate.ts'
import type { Logger } from '../../../../src/lib/log.ts'
import type { PodStreams } from './http/pod-streams.ts'
import type { Server } from 'node:http'
import type { User } from './http/users.ts'

export interface ApiServerOptions {
  /** The ranges of cluster IPs, one per family; the first is the default family. */
  readonly serviceCidrs?: readonly string[]
  /** Changes of a resource that a watch can go back to, at least. */
  readonly historyLimit?: number
  readonly bookmarkIntervalMs?: number
  readonly podStreams?: PodStreams
  readonly log?: Logger
}

export type UserName = 'admin' | 'kube-proxy'

export interface ApiServer extends AsyncDisposable {
  /** `https://127.0.0.1:41234`: where it listens first. */
  readonly url: string
  /** The token of the administrator, who may do everything. */
  readonly token: string
  /** PEM of the authority that signed its certificates. */
  readonly certificateAuthority: string
  readonly store: Store
  /** The API without HTTP, for code in the same process. */
  readonly registry: Registry
  /**
   * Listens on a further address, with a certificate for it, and returns the URL. `fd` is a socket that is bound to the
   * address already, in another network namespace.
   */
  listen(host: string, port?: number, fd?: number): Promise<string>
  /** The text of a kubeconfig: for a person by default, with the rights of a proxy on request. */
  kubeconfig(options?: { readonly user?: UserName; readonly url?: string }): string
  /** From now on no client is listened to, and connections are cut off; or they are again. */
  setAway(isAway: boolean): void
  close(): Promise<void>
}

const NODE_PORTS = { first: 30_000, last: 32_767 }
const defaults = {
  serviceCidrs: ['10.96.0.0/16'],
  bookmarkIntervalMs: 60_000,
} as const

export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const clock = systemClock
  const log = options.log ?? silentLogger
  const store = new Store(options.historyLimit === undefined ? {} : { historyLimit: options.historyLimit })
  const identity = newIdentity(clock.now())
  const registry = createRegistry(store, clock)
  bootstrap(registry, { serviceCidrs: options.serviceCidrs ?? defaults.serviceCidrs })

  const api: Api = {
    registry,
    clock,
    users: usersOf(identity),
    bookmarkIntervalMs: options.bookmarkIntervalMs ?? defaults.bookmarkIntervalMs,
    podStreams: options.podStreams ?? {},
  }
  const listeners: Server[] = []
  let isAway = false
  const listen = async (host: string, port = 0, fd?: number): Promise<string> => {
    const { server, url } = await openListener({ api, log, identity, host, port, fd })
    server.on('connection', (socket: Socket) => {
      if (isAway) socket.resetAndDestroy()
    })
    listeners.push(server)
    return url
  }
  const url = await listen('127.0.0.1')
  const close = async (): Promise<void> => {
    await Promise.all(listeners.splice(0).map((server) => closeServer(server)))
  }
  return {
    url,
    token: identity.tokens.admin,
    certificateAuthority: identity.authority.certificate,
    store,
    registry,
    listen,
    kubeconfig: (request = {}) =>
      formatKubeconfig({
        url: request.url ?? url,
        certificateAuthority: identity.authority.certificate,
        user: request.user ?? 'admin',
        token: identity.tokens[request.user ?? 'admin'],
      }),
    setAway(now) {
      isAway = now
      if (now) for (const server of listeners) server.closeAllConnections()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The rules around the store, those of service addresses included. */
export function createRegistry(store: Store, clock: Clock): Registry {
  const registry = new Registry(store, clock)
  const ips = new ClusterIps(store.collection(serviceCidrs), store.collection(ipAddresses))
  const ports = new NodePorts(NODE_PORTS, store.collection(services))
  registry.addHook(
    services,
    serviceAllocator(ips, ports, {
      book: (address) => registry.create(ipAddresses, address),
      release: (name) => registry.deleteIfThere(ipAddresses, { name }),
    }),
  )
  return registry
}

/** What clients know the server by, and the server its clients. */
interface Identity {
  readonly authority: KeyAndCertificate
  readonly tokens: { readonly admin: string; readonly 'kube-proxy': string }
}

function newIdentity(nowMs: number): Identity {
  const token = (): string => randomBytes(24).toString('base64url')
  return { authority: issueAuthority(nowMs), tokens: { admin: token(), 'kube-proxy': token() } }
}

function usersOf({ tokens }: Identity): User[] {
  return [
    { name: 'admin', token: tokens.admin },
    { name: 'system:kube-proxy', token: tokens['kube-proxy'], rules: proxyRules },
  ]
}

interface ListenerOptions {
  readonly api: Api
  readonly log: Logger
  readonly identity: Identity
  readonly host: string
  readonly port: number
  readonly fd: number | undefined
}

async function openListener({
  api,
  log,
  identity,
  host,
  port,
  fd,
}: ListenerOptions): Promise<{ server: Server; url: string }> {
  const names = [...new Set([host, '127.0.0.1', '::1', 'localhost', 'kubernetes', 'kubernetes.default.svc'])]
  const { key, certificate } = issueServing(identity.authority, names, api.clock.now())
  // Watches are quiet for minutes; clients keep connections for the next command.
  const limits = { requestTimeout: 0, keepAliveTimeout: 120_000, tls: { key, cert: certificate } }
  const server = createHttpServer(createHandler(api, log), limits)
  server.on('upgrade', createUpgradeHandler(api, log))
  const address = await listenAt(server, fd === undefined ? { port, host } : { fd })
  return { server, url: `https://${joinHostPort(host, address.port)}` }
}
