// What listens here, as /proc/net/tcp and /proc/net/tcp6 print it.

import { host32 } from '../../lib/endian.ts'
import { type Bytes, isUnspecified, parseIp, asBytes } from '../../lib/ip.ts'

export interface TcpListener {
  readonly address: Bytes
  readonly port: number
  /** Connections that the program has not accepted. */
  readonly waiting: number
}

const LISTEN = '0A'
/** TCP_CLOSE: a UDP socket that is bound and not connected. */
const BOUND = '07'

export function parseListeners(text: string): TcpListener[] {
  return parseSockets(text, LISTEN)
}

/** The same of /proc/net/udp and /proc/net/udp6. */
export function parseBound(text: string): TcpListener[] {
  return parseSockets(text, BOUND)
}

/** `   0: 0100007F:2809 00000000:0000 0A ...`: addresses are words in the machine's byte order. */
function parseSockets(text: string, wanted: string): TcpListener[] {
  return text.split('\n').flatMap((line) => {
    const [, address = '', port = '', state, waiting = '0'] =
      /^\s*\d+: ((?:[0-9A-F]{8})+):([0-9A-F]{4}) \S+ ([0-9A-F]{2}) (?:[0-9A-F]{8}:([0-9A-F]{8}))?/.exec(line) ?? []
    if (state !== wanted) return []
    const words = address.match(/.{8}/g) ?? []
    const bytes = words.map((word) => host32(parseInt(word, 16))).join('')
    return [{ address: asBytes(bytes), port: parseInt(port, 16), waiting: parseInt(waiting, 16) }]
  })
}

/** Whether one of them keeps a program from listening there. */
export function isTaken(listeners: readonly TcpListener[], host: string, port: number): boolean {
  const wanted = parseIp(host)
  if (wanted === undefined) return false
  return listeners.some(
    (each) => each.port === port && (isUnspecified(wanted) || isUnspecified(each.address) || each.address === wanted),
  )
}
