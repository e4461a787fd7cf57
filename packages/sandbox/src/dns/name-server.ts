// The server behind the Service kube-dns: names by UDP and TCP. Its sockets are its pod's, as those of every pod.

import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { openBoundSocket } from '../netns/sockets.ts'
import type { NetworkNamespace } from '../netns/network-namespace.ts'
import type { Behaviour, PodServer } from '../pod-server.ts'
import { plainAddress } from '../whoami/answer.ts'
import type { PodLog } from '../whoami/pod-log.ts'
import { answerQuestion, type NamedCluster } from './cluster-names.ts'
import {
  decodeQuestion,
  encodeAnswer,
  recordTypes,
  responseCodes,
  udpLimit,
  type Answer,
  type DnsRecord,
} from './dns-message.ts'

const OPCODE_QUERY = 0
const MAX_TCP_MESSAGE = 0xffff
const IDLE_MS = 10_000

export interface NameServerOptions {
  readonly netns: NetworkNamespace
  readonly ports: readonly number[]
  readonly cluster: NamedCluster
  readonly log: PodLog
}

export class NameServer implements PodServer {
  readonly #options: NameServerOptions
  #behaviour: Behaviour = 'refuse'
  #servers: Server[] = []
  #udpSockets: UdpSocket[] = []
  readonly #connections = new Set<Socket>()

  constructor(options: NameServerOptions) {
    this.#options = options
  }

  setBehaviour(behaviour: Behaviour): void {
    const wasListening = this.#behaviour !== 'refuse'
    this.#behaviour = behaviour
    if (behaviour === 'refuse') this.close()
    else if (!wasListening) for (const port of this.#options.ports) this.#listen(port)
  }

  close(): void {
    this.#behaviour = 'refuse'
    for (const server of this.#servers.splice(0)) server.close()
    for (const socket of this.#udpSockets.splice(0)) socket.close()
    for (const connection of this.#connections) connection.resetAndDestroy()
  }

  #listen(port: number): void {
    const { netns } = this.#options
    const udp = createSocket('udp6')
    udp.on('message', (message, { address, port: clientPort }) => {
      const answer = this.#answer(message, plainAddress(address), 'udp')
      if (answer !== undefined) udp.send(answer, clientPort, address, () => {})
    })
    // A client that is gone is no concern of the server.
    udp.on('error', () => {})
    udp.bind({ fd: openBoundSocket(netns, 'udp', port), exclusive: true })
    this.#udpSockets.push(udp)
    const server = createServer((socket) => this.#serve(socket))
    server.listen({ fd: openBoundSocket(netns, 'tcp', port) })
    this.#servers.push(server)
  }

  /** By TCP each message comes behind its length; several may come on one connection. */
  #serve(socket: Socket): void {
    this.#connections.add(socket)
    socket.on('close', () => this.#connections.delete(socket))
    socket.on('error', () => {})
    socket.setTimeout(IDLE_MS, () => socket.destroy())
    let rest = Buffer.alloc(0)
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes])
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const end = 2 + rest.readUInt16BE(0)
        const answer = this.#answer(rest.subarray(2, end), plainAddress(socket.remoteAddress), 'tcp')
        rest = rest.subarray(end)
        if (answer === undefined) continue
        const length = Buffer.alloc(2)
        length.writeUInt16BE(answer.length)
        socket.write(Buffer.concat([length, answer]))
      }
    })
  }

  #answer(message: Buffer, client: string, by: 'udp' | 'tcp'): Buffer | undefined {
    if (this.#behaviour !== 'serve') return undefined
    const question = decodeQuestion(message)
    if (question === undefined) return undefined
    const answer: Answer =
      question.opcode === OPCODE_QUERY
        ? answerQuestion(this.#options.cluster, question.name, question.type)
        : { code: responseCodes.notImplemented, answers: [], authority: [], additional: [] }
    const type = Object.entries(recordTypes).find(([, number]) => number === question.type)?.[0] ?? question.type
    const outcome = answer.code === responseCodes.ok ? `${answer.answers.length} records` : 'no such name'
    this.#options.log.append(`${by} ${type} ${question.name} from ${client}: ${outcome}`)
    const turned = { ...answer, answers: rotate(answer.answers) }
    return encodeAnswer(question, turned, by === 'udp' ? udpLimit(question) : MAX_TCP_MESSAGE)
  }
}

/** Begins somewhere else each time: many clients take the first address. */
function rotate(records: readonly DnsRecord[]): DnsRecord[] {
  const start = Math.floor(Math.random() * records.length)
  return [...records.slice(start), ...records.slice(0, start)]
}
