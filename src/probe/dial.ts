// Makes connections, and reports the outcome of each.

import { plainAddress } from '../lib/ip.ts'
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { Socket } from 'node:net'
import { type Attempt, type Dial, outcomeOf, parseGreeting } from './protocol.ts'

/** So many dials at once: more would measure the probe. */
const CONCURRENCY = 48
/** A datagram may get lost, as the first to a neighbour whose link address is not known. */
const RESEND_MS = 400
const LONGEST_ANSWER = 4096
const NO_ANSWER: Attempt = { outcome: 'no answer' }
const NO_ROUTE: Attempt = { outcome: 'no route' }

/** Sockets that outlive a dial. */
export type KeptSockets = Map<string, UdpSocket>

/** The attempts of each dial, in the order of the dials. */
export async function runDials(dials: readonly Dial[], kept: KeptSockets): Promise<Attempt[][]> {
  const results: Attempt[][] = dials.map(() => [])
  let next = 0
  const work = async (): Promise<void> => {
    while (next < dials.length) {
      const at = next++
      results[at] = await runDial(dials[at]!, kept)
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  return results
}

async function runDial(dial: Dial, kept: KeptSockets): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  while (attempts.length < dial.times) {
    const attempt = await (dial.protocol === 'TCP' ? dialTcp(dial) : dialUdp(dial, kept))
    attempts.push(attempt)
    if (attempt.outcome === 'answered' || (attempt.outcome === 'refused' && dial.evenIfRefused === true)) continue
    if (attempt.outcome === 'no answer' && !(await hasRoute(dial.address))) attempts[attempts.length - 1] = NO_ROUTE
    break
  }
  return attempts
}

function dialTcp({ address, port, wait, timeoutMs }: Dial): Promise<Attempt> {
  return new Promise((resolve) => {
    const socket = new Socket()
    let from = ''
    let text = ''
    const finish = (attempt: Attempt): void => {
      clearTimeout(timer)
      resolve(from === '' ? attempt : { from, ...attempt })
      // With a reset: a closed connection would keep its port for a minute.
      if (socket.connecting || socket.destroyed) socket.destroy()
      else socket.resetAndDestroy()
    }
    const timer = setTimeout(() => finish(NO_ANSWER), timeoutMs)
    socket.on('error', (error: NodeJS.ErrnoException) => finish(failure(error)))
    socket.on('close', () => finish({ outcome: 'failed', error: 'the connection ended without an answer' }))
    socket.on('data', (bytes) => {
      text = (text + bytes.toString()).slice(0, LONGEST_ANSWER)
      if (text.includes('\n')) finish(wait === 'http' ? readStatus(text) : readGreeting(text))
    })
    socket.connect({ host: address, port }, () => {
      from = plainAddress(socket.localAddress)
      if (wait === 'connect') finish({ outcome: 'answered' })
      if (wait === 'http') socket.write('GET /healthz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n')
    })
  })
}

function dialUdp({ address, port, timeoutMs, socket: name }: Dial, kept: KeptSockets): Promise<Attempt> {
  return new Promise((resolve) => {
    const known = name === undefined ? undefined : kept.get(name)
    const socket = known ?? createSocket(address.includes(':') ? 'udp6' : 'udp4')
    if (name !== undefined) kept.set(name, socket)
    // EPERM: a rule of this machine stopped the datagram. If it was a refusal, that comes by itself.
    const send = (): void =>
      socket.send('probe', (error) => {
        if (error !== null && (error as NodeJS.ErrnoException).code !== 'EPERM') finish(failure(error))
      })
    const finish = (attempt: Attempt): void => {
      clearTimeout(timer)
      clearInterval(again)
      socket
        .removeAllListeners('message')
        .removeAllListeners('error')
        .on('error', () => {})
      if (name === undefined) socket.close()
      resolve(attempt)
    }
    const timer = setTimeout(() => finish(NO_ANSWER), timeoutMs)
    const again = setInterval(() => connected && send(), RESEND_MS)
    let connected = known !== undefined
    socket.on('error', (error: NodeJS.ErrnoException) => finish(failure(error)))
    socket.on('message', (bytes) =>
      finish({ from: plainAddress(socket.address().address), ...readGreeting(bytes.toString()) }),
    )
    if (connected) send()
    else {
      // Connected, the socket learns of a refusal.
      socket.connect(port, address, (error?: Error) => {
        if (error instanceof Error) return finish(failure(error))
        connected = true
        send()
      })
    }
  })
}

/** Connecting a socket for datagrams sends nothing, and fails where the machine itself knows no way. */
function hasRoute(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    socket.on('error', () => {})
    socket.connect(9, address, (error?: Error) => {
      resolve(!(error instanceof Error))
      socket.close()
    })
  })
}

function readGreeting(text: string): Attempt {
  const greeting = parseGreeting(text)
  if (greeting !== undefined) return { outcome: 'answered', greeting }
  return { outcome: 'failed', error: `something else answered: ${JSON.stringify(text.slice(0, 60))}` }
}

function readStatus(text: string): Attempt {
  const [, status] = /^HTTP\/1\.\d (\d{3})/.exec(text) ?? []
  if (status !== undefined) return { outcome: 'answered', status: Number(status) }
  return { outcome: 'failed', error: 'something else answered' }
}

function failure(error: NodeJS.ErrnoException): Attempt {
  return { outcome: outcomeOf(error.code), error: error.message }
}
