// A connection through a SOCKS5 proxy (RFC 1928), with a name and a password if it asks for them (RFC 1929). As in Go, the proxy
// resolves names.

import { Buffer } from 'node:buffer'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseIp } from '../../lib/ip.ts'

const VERSION = 5
const NO_AUTHENTICATION = 0
const PASSWORD = 2
const CONNECT = 1
const IPV4 = 1
const NAME = 3
const IPV6 = 4

const DEFAULT_PORT = 1080

const refusals: Readonly<Record<number, string>> = {
  1: 'general failure',
  2: 'not allowed by its rules',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'TTL expired',
  7: 'command not supported',
  8: 'address type not supported',
}

/** Rejects when the proxy refuses, and after the timeout. */
export async function connectThroughSocks(
  proxy: URL,
  target: { readonly host: string; readonly port: number },
  timeoutMs: number,
): Promise<Socket> {
  const host = proxy.hostname.replace(/^\[|\]$/g, '')
  const socket = connect({ host, port: Number(proxy.port) || DEFAULT_PORT })
  const timer = setTimeout(() => socket.destroy(new Error('it does not answer')), timeoutMs)
  try {
    await once(socket, 'connect')
    await authenticate(socket, proxy)
    await askFor(socket, target)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

async function authenticate(socket: Socket, { username, password }: URL): Promise<void> {
  const methods = username === '' ? [NO_AUTHENTICATION] : [NO_AUTHENTICATION, PASSWORD]
  socket.write(Uint8Array.of(VERSION, methods.length, ...methods))
  const [version, method] = await readBytes(socket, 2)
  if (version !== VERSION) throw new Error('it does not speak SOCKS5')
  if (method === NO_AUTHENTICATION) return
  if (method !== PASSWORD || username === '') throw new Error('it wants another way of authentication')
  const words = [username, password].map((word) => Buffer.from(decodeURIComponent(word)))
  if (words.some(({ length }) => length > 255)) throw new Error('name and password have at most 255 bytes')
  socket.write(Buffer.concat([Uint8Array.of(1), ...words.flatMap((word) => [Uint8Array.of(word.length), word])]))
  const [, status] = await readBytes(socket, 2)
  if (status !== 0) throw new Error('it refuses name and password')
}

async function askFor(socket: Socket, { host, port }: { readonly host: string; readonly port: number }): Promise<void> {
  const head = Uint8Array.of(VERSION, CONNECT, 0)
  socket.write(Buffer.concat([head, addressOf(host), Uint8Array.of(port >> 8, port & 255)]))
  const [version, code = 0, , type] = await readBytes(socket, 4)
  if (version !== VERSION) throw new Error('it does not speak SOCKS5')
  if (code !== 0) throw new Error(refusals[code] ?? `refused with ${code}`)
  // The address and port that the proxy connects from.
  const length = type === IPV4 ? 4 : type === IPV6 ? 16 : (await readBytes(socket, 1))[0]!
  await readBytes(socket, length + 2)
}

function addressOf(host: string): Buffer {
  const address = parseIp(host)
  if (address !== undefined) {
    return Buffer.concat([Uint8Array.of(address.length === 4 ? IPV4 : IPV6), Buffer.from(address, 'latin1')])
  }
  const name = Buffer.from(host)
  if (name.length > 255) throw new Error('the name of the host has more than 255 bytes')
  return Buffer.concat([Uint8Array.of(NAME, name.length), name])
}

/** Exactly `length` bytes; later ones stay in the socket. */
async function readBytes(socket: Socket, length: number): Promise<Buffer> {
  for (let bytes = Buffer.alloc(0); ;) {
    // Everything: unread bytes would cause the event again and again.
    const more = socket.read() as Buffer | null
    if (more !== null) bytes = Buffer.concat([bytes, more])
    if (bytes.length > length) socket.unshift(bytes.subarray(length))
    if (bytes.length >= length) return bytes.subarray(0, length)
    if (socket.readableEnded || socket.destroyed) throw new Error('it closed the connection')
    await readableOrEnded(socket)
  }
}

function readableOrEnded(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (error?: Error) => {
      socket.off('readable', settle).off('end', settle).off('close', settle).off('error', settle)
      if (error instanceof Error) reject(error)
      else resolve()
    }
    socket.on('readable', settle).on('end', settle).on('close', settle).on('error', settle)
  })
}
