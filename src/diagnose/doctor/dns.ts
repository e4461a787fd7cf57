// Asks a name server for the addresses of a name. One question, one datagram, no library: the answer is only read as far as needed.

import { createSocket } from 'node:dgram'
import { type Family, formatIp, asBytes } from '../../lib/ip.ts'

export type NameAnswer =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  /** `NXDOMAIN`, `SERVFAIL` */
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'silent'; readonly error: string }

const PATIENCE_MS = 1500
const HEADER_LENGTH = 12
const TYPES: Readonly<Record<Family, number>> = { 4: 1, 6: 28 }
const CODES = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']

/** Never rejects. */
export function lookUp(server: string, port: number, name: string, family: Family): Promise<NameAnswer> {
  const id = 1 + Math.floor(Math.random() * 0xfffe)
  const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4')
  return new Promise((resolve) => {
    const finish = (answer: NameAnswer) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(() => finish({ kind: 'silent', error: `no answer within ${PATIENCE_MS} ms` }), PATIENCE_MS)
    socket.on('error', (error: NodeJS.ErrnoException) => finish({ kind: 'silent', error: error.code ?? error.message }))
    socket.on('message', (message) => {
      const answer = decodeAnswer(message, id, family)
      if (answer !== undefined) finish(answer)
    })
    // Connected, so that a refusal is heard.
    socket.connect(port, server, () => socket.send(encodeQuestion(id, name, family)))
  })
}

export function encodeQuestion(id: number, name: string, family: Family): Buffer {
  const header = Buffer.alloc(HEADER_LENGTH)
  header.writeUInt16BE(id, 0)
  // Recursion is asked for.
  header.writeUInt16BE(0x0100, 2)
  header.writeUInt16BE(1, 4)
  const labels = name.split('.').map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1'))
  const type = Buffer.from([0, 0, TYPES[family], 0, 1])
  return Buffer.concat([header, ...labels, type])
}

/** Undefined: it is no answer to this question. */
export function decodeAnswer(message: Buffer, id: number, family: Family): NameAnswer | undefined {
  if (message.length < HEADER_LENGTH || message.readUInt16BE(0) !== id) return undefined
  const code = message[3]! & 0x0f
  if (code !== 0) return { kind: 'code', code: CODES[code] ?? `code ${code}` }
  const addresses: string[] = []
  try {
    let at = HEADER_LENGTH
    for (let i = message.readUInt16BE(4); i > 0; i--) at = afterName(message, at) + 4
    for (let i = message.readUInt16BE(6); i > 0; i--) {
      at = afterName(message, at)
      const [type, length] = [message.readUInt16BE(at), message.readUInt16BE(at + 8)]
      at += 10
      if (type === TYPES[family]) addresses.push(formatIp(asBytes(message.toString('latin1', at, at + length))))
      at += length
    }
  } catch {
    return { kind: 'code', code: 'an answer that cannot be read' }
  }
  return addresses.length === 0 ? { kind: 'code', code: 'no address' } : { kind: 'addresses', addresses }
}

/** A name ends with an empty label, or with a pointer to another one. */
function afterName(message: Buffer, start: number): number {
  let at = start
  for (;;) {
    const length = message.readUInt8(at)
    if (length === 0) return at + 1
    if (length >= 0xc0) return at + 2
    at += length + 1
  }
}
