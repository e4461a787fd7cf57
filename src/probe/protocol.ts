// What the command asks of a probe, and what a probe answers: lines of JSON over the streams of `kubectl exec`.

import { plainAddress } from '../lib/ip.ts'

export type Protocol = 'TCP' | 'UDP'

/** What a probe says to whoever connects: a line of JSON by TCP, a datagram by UDP. */
export interface Greeting {
  /** `POD:PORT` */
  readonly endpoint: string
  /** The address that the probe sees. */
  readonly client: string
}

/** Connections to make, one after the other. */
export interface Dial {
  readonly address: string
  readonly port: number
  readonly protocol: Protocol
  readonly times: number
  /** `greeting`: a probe answers. `connect`: the connection is all. `http`: the status of GET /healthz. */
  readonly wait: 'greeting' | 'connect' | 'http'
  readonly timeoutMs: number
  /** Goes on after a refusal; absent: the first attempt that fails ends it. */
  readonly evenIfRefused?: boolean
  /** A name: datagrams of this and later dials of that name come from one socket. */
  readonly socket?: string
}

/** `no route`: the client's own machine has none. */
export type Outcome = 'answered' | 'refused' | 'no answer' | 'no route' | 'failed'

export interface Attempt {
  readonly outcome: Outcome
  readonly greeting?: Greeting
  /** The address that the client's socket had. */
  readonly from?: string
  readonly status?: number
  readonly error?: string
}

export interface DialRequest {
  readonly id: number
  readonly dials: readonly Dial[]
}

export interface DialReply {
  readonly id: number
  /** One list for each dial. */
  readonly attempts: readonly (readonly Attempt[])[]
}

export function formatGreeting(endpoint: string, client: string | undefined): string {
  return `${JSON.stringify({ endpoint, client: plainAddress(client) } satisfies Greeting)}\n`
}

/** Undefined for what no probe says. */
export function parseGreeting(text: string): Greeting | undefined {
  try {
    const { endpoint, client } = JSON.parse(text) as Partial<Greeting>
    return typeof endpoint === 'string' && typeof client === 'string' ? { endpoint, client } : undefined
  } catch {
    return undefined
  }
}

/** What an error of a socket means to a client. */
export function outcomeOf(code: string | undefined): Outcome {
  switch (code) {
    case 'ECONNREFUSED':
      return 'refused'
    case 'EADDRNOTAVAIL':
      return 'no route'
    case 'ENETUNREACH':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
      return 'no answer'
    default:
      return 'failed'
  }
}

/** Splits a stream of bytes into lines. */
export class LineReader {
  #rest = ''
  readonly #decoder = new TextDecoder()

  push(bytes: Uint8Array): string[] {
    const lines = (this.#rest + this.#decoder.decode(bytes, { stream: true })).split('\n')
    this.#rest = lines.pop()!
    return lines
  }
}
