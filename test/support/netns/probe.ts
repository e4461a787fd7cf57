// Clients: they open real sockets in a namespace and tell what became of it.

import { createSocket } from 'node:dgram'
import { closeSync } from 'node:fs'
import { get } from 'node:http'
import { Socket } from 'node:net'
import { onLines } from './echo-server.ts'
import { patience } from '../patience.ts'
import { connectSocket, countResent, openClient } from './sockets.ts'
import type { Greeting } from './echo-server.ts'
import type { IncomingHttpHeaders } from 'node:http'
import type { Netns } from './netns.ts'
import type { Socket as UdpSocket } from 'node:dgram'

export interface Target {
  readonly address: string
  readonly port: number
}

export interface ProbeOptions {
  /** The client's own address; the kernel chooses when it is absent. */
  readonly from?: string
  readonly fromPort?: number
  /** How long to wait for an answer before the target counts as silent; absent: as long as answers may take. */
  readonly timeoutMs?: number
  /** UDP: sends without connect(), and takes answers of nobody but the target. */
  readonly isUnconnected?: boolean
}

/** What became of an attempt. */
export type Answer =
  | {
      readonly kind: 'answered'
      readonly greeting: Greeting
      /** The address that the client sent from. */
      readonly client: string
      readonly clientPort: number
    }
  | { readonly kind: 'refused' }
  | { readonly kind: 'silent' }
  /** Anything else, by its errno: ECONNRESET, EHOSTUNREACH. */
  | { readonly kind: 'failed'; readonly code: string }

/** A connection, or a UDP flow, that stays open. */
export interface Conversation {
  /** Sends a line and waits for its answer. */
  say(line: string, timeoutMs?: number): Promise<Answer>
  /** How often the client's kernel had to send something again: always 0 for UDP. */
  resent(): number
  close(): void
}

/**
 * How long an answer may take. A lost packet is no silence yet: the kernel sends the first one of a connection again after
 * 1, 3 and 7 seconds.
 */
export function answersWithinMs(): number {
  return 8000 * patience()
}

/** For probes that are repeated until one is answered: each of them may be lost. */
export function aShortWhile(): { readonly timeoutMs: number } {
  return { timeoutMs: 300 * patience() }
}

/** When a datagram is sent again: the kernel does that for TCP alone. */
export const resendMs = 1000

/** Connects over TCP, waits for the greeting and closes. */
export async function tcpProbe(netns: Netns, to: Target, options: ProbeOptions = {}): Promise<Answer> {
  const { answer, conversation } = await openTcp(netns, to, options)
  conversation.close()
  return answer
}

/** Sends a datagram from a socket of its own, again after a while, and waits for an answer. */
export async function udpProbe(netns: Netns, to: Target, options: ProbeOptions = {}): Promise<Answer> {
  const conversation = await openUdp(netns, to, options)
  const end = performance.now() + (options.timeoutMs ?? answersWithinMs())
  try {
    for (;;) {
      const leftMs = end - performance.now()
      const answer = await conversation.say('hello', Math.min(resendMs, Math.max(leftMs, 1)))
      if (answer.kind !== 'silent' || leftMs <= resendMs) return answer
    }
  } finally {
    conversation.close()
  }
}

/** Connects over TCP and keeps the connection. `answer` is the greeting. */
export async function openTcp(
  netns: Netns,
  to: Target,
  options: ProbeOptions = {},
): Promise<{ answer: Answer; conversation: Conversation }> {
  const fd = openClient(netns, 'tcp', to, ownAddress(options))
  const socket = new Socket({ fd, readable: true, writable: true })
  socket.setNoDelay(true)
  const inbox = openInbox(() => ({ client: socket.localAddress ?? '', clientPort: socket.localPort ?? 0 }))
  onLines(socket, (line) => inbox.take(line))
  socket.on('error', (error: NodeJS.ErrnoException) => inbox.fail(error.code ?? error.message))
  socket.on('close', () => inbox.fail('closed'))
  socket.connect({ host: to.address, port: to.port })
  const answer = await inbox.next(options.timeoutMs ?? answersWithinMs())
  return {
    answer,
    conversation: {
      say(line, timeoutMs = answersWithinMs()) {
        if (!socket.destroyed) socket.write(`${line}\n`)
        return inbox.next(timeoutMs)
      },
      resent: () => (socket.destroyed ? 0 : countResent(fd)),
      // A reset leaves nothing in TIME_WAIT, on neither side.
      close: () => void (socket.connecting ? socket.destroy() : socket.resetAndDestroy()),
    },
  }
}

/** Opens a UDP flow: all of it has one source port. */
export async function openUdp(netns: Netns, to: Target, options: ProbeOptions = {}): Promise<Conversation> {
  const fd = openClient(netns, 'udp', to, ownAddress(options))
  const socket: UdpSocket = createSocket(to.address.includes(':') ? 'udp6' : 'udp4')
  const { isUnconnected = false } = options
  const inbox = openInbox(() => {
    const { address, port } = socket.address()
    return { client: isUnconnected ? sourceTo(netns, to, options) : address, clientPort: port }
  })
  socket.on('message', (message, { address, port }) => {
    if (!isUnconnected || (address === to.address && port === to.port)) inbox.take(message.toString())
    else inbox.fail(`an answer from ${address} port ${port}`)
  })
  socket.on('error', (error: NodeJS.ErrnoException) => inbox.fail(error.code ?? error.message))
  await new Promise<void>((resolve) => socket.bind({ fd }, resolve))
  const connected = new Promise<void>((resolve, reject) => {
    if (isUnconnected) return resolve()
    socket.connect(to.port, to.address, ((error?: Error) => (error ? reject(error) : resolve())) as () => void)
  })
  await connected
  return {
    say(line, timeoutMs = 1000 * patience()) {
      const sent = (error: NodeJS.ErrnoException | null) => {
        // EPERM: a rule of the sender's own host has eaten it. Whether it says so (a reject) or not, time will tell.
        if (error && error.code !== 'EPERM') inbox.fail(error.code ?? error.message)
      }
      if (isUnconnected) socket.send(line, to.port, to.address, sent)
      else socket.send(line, sent)
      return inbox.next(timeoutMs)
    },
    resent: () => 0,
    close: () => void socket.close(),
  }
}

/** The address from which a namespace sends there. A socket that is not connected does not know. */
function sourceTo(netns: Netns, { address, port }: Target, options: ProbeOptions): string {
  if (options.from !== undefined) return options.from
  const fd = openClient(netns, 'udp', { address })
  try {
    return connectSocket(fd, { ip: address, port }).ip
  } finally {
    closeSync(fd)
  }
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Asks over HTTP; undefined when no server answers. */
export function httpGet(
  netns: Netns,
  to: Target,
  options: ProbeOptions & { readonly path?: string } = {},
): Promise<HttpAnswer | undefined> {
  const { path = '/', timeoutMs = 2000 * patience() } = options
  return new Promise((resolve) => {
    const request = get(
      {
        path,
        host: to.address,
        port: to.port,
        createConnection: () =>
          new Socket({ fd: openClient(netns, 'tcp', to, ownAddress(options)) }).connect(to.port, to.address),
      },
      (response) => {
        let body = ''
        response.setEncoding('utf8')
        response.on('data', (text: string) => (body += text))
        response.on('end', () => finish({ status: response.statusCode ?? 0, headers: response.headers, body }))
        response.on('close', () => finish(undefined))
      },
    )
    const timer = setTimeout(() => finish(undefined), timeoutMs)
    const finish = (answer: HttpAnswer | undefined) => {
      clearTimeout(timer)
      resolve(answer)
      request.destroy()
    }
    request.on('error', () => finish(undefined))
  })
}

function ownAddress({ from, fromPort }: ProbeOptions) {
  return { ip: from, port: fromPort }
}

/** Answers in the order in which they arrive, for callers that wait for one at a time. */
function openInbox(describeClient: () => { client: string; clientPort: number }) {
  const waiting: ((answer: Answer) => void)[] = []
  const arrived: Answer[] = []
  let failure: Answer | undefined
  const deliver = (answer: Answer) => {
    const taker = waiting.shift()
    if (taker === undefined) arrived.push(answer)
    else taker(answer)
  }
  return {
    take(text: string) {
      deliver({ kind: 'answered', greeting: JSON.parse(text) as Greeting, ...describeClient() })
    },
    fail(code: string) {
      failure ??= code === 'ECONNREFUSED' ? { kind: 'refused' } : { kind: 'failed', code }
      for (const taker of waiting.splice(0)) taker(failure)
    },
    next(timeoutMs: number): Promise<Answer> {
      const first = arrived.shift() ?? failure
      if (first !== undefined) return Promise.resolve(first)
      return new Promise((resolve) => {
        // A process that had to wait for a busy machine finds its timers due before it looks what has arrived. So silence
        // counts after a second, short wait.
        let timer = setTimeout(() => {
          timer = setTimeout(
            () => {
              waiting.splice(waiting.indexOf(taker), 1)
              resolve({ kind: 'silent' })
            },
            Math.min(100, timeoutMs / 4),
          )
        }, timeoutMs)
        const taker = (answer: Answer) => {
          clearTimeout(timer)
          resolve(answer)
        }
        waiting.push(taker)
      })
    },
  }
}
