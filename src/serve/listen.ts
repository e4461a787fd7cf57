// Binding a port and keeping it bound.

import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Clock, Timer } from '../lib/clock.ts'
import { ipFamily } from '../lib/ip.ts'
import type { Logger } from '../lib/log.ts'
import { limitConnections } from './connections.ts'
import { closeServer, createHttpServer } from './http-server.ts'

export interface ListenOptions {
  /** What is served there, for messages: "healthz". */
  readonly name: string
  /** `10.0.0.1:80`, `[::]:80`, `:80`. */
  readonly address: string
  /** As in Go: with tcp, which is the default, 0.0.0.0 and [::] both mean any address of any family. */
  readonly network?: 'tcp' | 'tcp4' | 'tcp6'
  readonly handler: RequestListener
  /** When the port cannot be bound: try again every 5 seconds, or give up. */
  readonly whenRefused: 'retry' | 'give up'
  /** Called when the port cannot be bound: once, however many attempts follow. */
  readonly onRefused?: (error: Error) => void
  readonly clock: Clock
  readonly log: Logger
}

const RETRY_MS = 5000

const connectionLimits = { total: 512, perSource: 128 }

/** A port that is bound, or being bound. */
export class Listener {
  readonly #options: ListenOptions
  #server: Server | undefined
  #timer: Timer | undefined
  #refusals = 0
  #closed = false
  #resolveReady!: () => void
  /** Resolves when the port is bound for the first time. Never rejects: see onRefused. */
  readonly ready: Promise<void> = new Promise((resolve) => (this.#resolveReady = resolve))

  constructor(options: ListenOptions) {
    this.#options = options
    this.#open()
  }

  /** Where it listens now; undefined while it does not. */
  get bound(): AddressInfo | undefined {
    const address = this.#server?.listening === true ? this.#server.address() : null
    return address === null || typeof address === 'string' ? undefined : address
  }

  /** Frees the port at once and ends the connections. */
  async close(): Promise<void> {
    this.#closed = true
    this.#timer?.cancel()
    const server = this.#server
    if (server === undefined) return
    this.#server = undefined
    // Node looks the host up before it binds, even when it is an address. Closed in between, it would bind all the same.
    if (!server.listening) await new Promise((resolve) => server.once('listening', resolve).once('error', resolve))
    await closeServer(server)
  }

  #open(): void {
    const { address, handler, log, name, network } = this.#options
    const target = parseListenAddress(address)
    if (target === undefined) {
      this.#refused(new Error(`Cannot listen on ${JSON.stringify(address)}: must be an IP address and a port`))
      return
    }
    const server = createHttpServer(handler)
    limitConnections(server, connectionLimits)
    this.#server = server
    server.on('error', (error) => {
      // Also how a socket that stops accepting is reported; it is opened again.
      if (this.#server !== server) return
      this.#server = undefined
      server.close()
      this.#refused(error)
    })
    const { host, port } = target
    const anywhere = (network ?? 'tcp') === 'tcp' && (host === '0.0.0.0' || host === '::')
    // Without a host Node binds [::] with both families, or 0.0.0.0 where there is no IPv6.
    server.listen(anywhere ? { port } : { host, port, ipv6Only: network === 'tcp6' }, () => {
      if (this.#closed) return
      log.v(3)?.info('Listening', { name, address })
      if (this.#refusals > 0) log.info('Listening at last', { name, address, attempts: this.#refusals + 1 })
      this.#refusals = 0
      this.#resolveReady()
    })
  }

  #refused(error: Error): void {
    const { address, clock, log, name, onRefused, whenRefused } = this.#options
    if (this.#closed) return
    this.#refusals++
    if (this.#refusals === 1) {
      log.error(error, 'Cannot listen', { name, address, whenRefused })
      onRefused?.(error)
    } else {
      log.v(2)?.info('Still cannot listen', { name, address, attempts: this.#refusals, err: error.message })
    }
    if (whenRefused === 'retry') this.#timer = clock.setTimeout(() => this.#open(), RETRY_MS)
  }
}

/** Listens, unless the address is empty: that is how a server is switched off. */
export function listen(options: ListenOptions): Listener | undefined {
  return options.address === '' ? undefined : new Listener(options)
}

/** `ip:port` or `[ip]:port`; no IP means any. Undefined when it is neither. */
export function parseListenAddress(text: string): { host: string; port: number } | undefined {
  const match = /^(?:\[(?<v6>[^\]]*)\]|(?<v4>[^:[\]]*)):(?<port>\d{1,5})$/.exec(text)
  const port = Number(match?.groups!.port)
  if (match === null || port > 65535) return undefined
  const { v4, v6 } = match.groups!
  const host = v6 ?? v4!
  if (host === '') return { host: '::', port }
  // A mapped IPv4 address is an IPv4 address to parseIp, whatever its brackets say; the system takes it as written.
  const family = ipFamily(host)
  return family === undefined || (v6 === undefined && family === 6) ? undefined : { host, port }
}
