// The server behind the Service kube-dns: names by UDP and TCP.

import { plainAddress } from '../../../../src/lib/ip.ts'
import { createServer, type Server, type Socket } from 'node:net'
import { PodServer, type Datagram, type PodServerOptions } from '../pod-server.ts'
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

export interface NameServerOptions extends PodServerOptions {
  readonly cluster: NamedCluster
}

export class NameServer extends PodServer {
  readonly #cluster: NamedCluster

  constructor(options: NameServerOptions) {
    super(options)
    this.#cluster = options.cluster
  }

  protected override createTcpServer(): Server {
    return createServer((socket) => this.#serve(socket))
  }

  protected override answerDatagram({ payload, clientIP }: Datagram): Buffer | undefined {
    return this.#answer(payload, clientIP, 'udp')
  }

  /** By TCP each message comes behind its length; several may come on one connection. */
  #serve(socket: Socket): void {
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
    const question = this.isServing ? decodeQuestion(message) : undefined
    if (question === undefined) return undefined
    const answer: Answer =
      question.opcode === OPCODE_QUERY
        ? answerQuestion(this.#cluster, question.name, question.type)
        : { code: responseCodes.notImplemented, answers: [], authority: [], additional: [] }
    const type = Object.entries(recordTypes).find(([, number]) => number === question.type)?.[0] ?? question.type
    const outcome = answer.code === responseCodes.ok ? `${answer.answers.length} records` : 'no such name'
    this.log(`${by} ${type} ${question.name} from ${client}: ${outcome}`)
    const rotated = { ...answer, answers: rotate(answer.answers) }
    return encodeAnswer(question, rotated, by === 'udp' ? udpLimit(question) : MAX_TCP_MESSAGE)
  }
}

/** Begins somewhere else each time: many clients take the first address. */
function rotate(records: readonly DnsRecord[]): DnsRecord[] {
  const start = Math.floor(Math.random() * records.length)
  return [...records.slice(start), ...records.slice(0, start)]
}
