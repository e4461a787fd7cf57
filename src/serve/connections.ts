// Limits the connections of one server. A client that opens connections and sends nothing must not keep the
// kubelet's probe out: the probe is new and sends its question at once, so the client that has been silent the longest has to go.

import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { maskBytes, parseIp } from '../lib/ip.ts'

export interface ConnectionLimits {
  readonly total: number
  /** Of one client: an IPv4 address, or the 64 bits of IPv6 addresses that belong to one link. */
  readonly perSource: number
}

/** Closes connections of the server beyond these. */
export function limitConnections(server: Server, limits: ConnectionLimits): void {
  const connections = new Connections(limits)
  server.on('connection', (socket: Socket) => connections.add(socket))
  server.on('request', ({ socket }, response) => {
    connections.begin(socket)
    response.once('close', () => connections.rest(socket))
  })
}

class Connections {
  readonly #limits: ConnectionLimits
  /** By source, those whose clients have been silent the longest first. */
  readonly #bySource = new Map<string, Set<Socket>>()
  /** All of them, in the same order, with those of the same source. */
  readonly #all = new Map<Socket, Set<Socket>>()
  /** Those whose questions are being answered. */
  readonly #busy = new Set<Socket>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** A question has come. */
  begin(socket: Socket): void {
    this.#busy.add(socket)
  }

  add(socket: Socket): void {
    const source = sourceOf(socket.remoteAddress ?? '')
    let ofSource = this.#bySource.get(source)
    if (ofSource === undefined) this.#bySource.set(source, (ofSource = new Set()))
    ofSource.add(socket)
    this.#all.set(socket, ofSource)
    socket.once('close', () => {
      this.#all.delete(socket)
      this.#busy.delete(socket)
      ofSource.delete(socket)
      if (ofSource.size === 0 && this.#bySource.get(source) === ofSource) this.#bySource.delete(source)
    })
    if (ofSource.size > this.#limits.perSource) this.#evictFrom(ofSource)
    else if (this.#all.size > this.#limits.total) this.#evictFrom(this.#all.keys())
  }

  /** The answer is out. The connection stays for the next question, as the one that was silent for the shortest time. */
  rest(socket: Socket): void {
    this.#busy.delete(socket)
    const ofSource = this.#all.get(socket)
    if (ofSource === undefined) return
    this.#all.delete(socket)
    this.#all.set(socket, ofSource)
    ofSource.delete(socket)
    ofSource.add(socket)
  }

  /** Only where all are busy, a busy one goes. */
  #evictFrom(sockets: Iterable<Socket>): void {
    let oldest: Socket | undefined
    for (const socket of sockets) {
      if (socket.destroyed) continue
      oldest ??= socket
      if (this.#busy.has(socket)) continue
      socket.destroy()
      return
    }
    oldest?.destroy()
  }
}

function sourceOf(address: string): string {
  const bytes = parseIp(address)
  return bytes?.length === 16 ? maskBytes(bytes, 64) : (bytes ?? address)
}
