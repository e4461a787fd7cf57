// A client whose connections and flows stay, whatever becomes of them.

import { createSocket } from 'node:dgram'
import { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { nextProbePort } from '../flows.ts'
import type { Netns } from '../netns/netns.ts'
import type { Target } from '../netns/probe.ts'
import { onLines } from '../netns/echo-server.ts'
import { openClient } from '../netns/sockets.ts'

/** A flow that nobody answers goes on like this. */
const FLOW_MS = 150

/** A connection, or a UDP flow. */
export interface Pending {
  /** The address of the endpoint that has answered, the last one. */
  answeredBy: string | undefined
  /** Set when a connection has ended without an answer. */
  failed: string | undefined
  halfClose(): void
  hangUp(): void
}

export interface Caller {
  readonly netns: Netns
  readonly ip: string | undefined
  readonly to: Target
}

export function connectTcp({ netns, ip, to }: Caller): Pending {
  const socket = new Socket({ fd: openClient(netns, 'tcp', to, { ip, port: nextProbePort() }), allowHalfOpen: true })
  const pending: Pending = {
    answeredBy: undefined,
    failed: undefined,
    halfClose: () => void socket.end(),
    // A reset leaves nothing in TIME_WAIT, on neither side.
    hangUp: () => void (socket.connecting ? socket.destroy() : socket.resetAndDestroy()),
  }
  onLines(socket, (line) => (pending.answeredBy = line))
  socket.on('error', (error: NodeJS.ErrnoException) => (pending.failed ??= error.code ?? error.message))
  socket.on('close', () => (pending.failed ??= 'closed'))
  socket.connect({ host: to.address, port: to.port })
  return pending
}

/** Sends a datagram now, and goes on to. */
export function beginUdp({ netns, ip, to }: Caller): Pending {
  const fd = openClient(netns, 'udp', to, { ip, port: nextProbePort() })
  const socket = createSocket(to.address.includes(':') ? 'udp6' : 'udp4')
  let timer: NodeJS.Timeout | undefined
  let isOpen = true
  const pending: Pending = {
    answeredBy: undefined,
    failed: undefined,
    halfClose: () => {},
    hangUp: () => {
      if (!isOpen) return
      isOpen = false
      clearInterval(timer)
      socket.close()
    },
  }
  socket.on('message', (message) => (pending.answeredBy = message.toString()))
  // A refusal does not end a flow.
  socket.on('error', () => {})
  socket.bind({ fd }, () => {
    const send = () => socket.send('x', to.port, to.address, () => {})
    if (!isOpen) return
    send()
    timer = setInterval(send, FLOW_MS)
  })
  return pending
}

/** Waits for an answer, or for the end of a connection. */
export async function answerOf(pending: Pending, withinMs: number): Promise<string | undefined> {
  const untilMs = performance.now() + withinMs
  while (pending.answeredBy === undefined && pending.failed === undefined && performance.now() < untilMs)
    await sleep(20)
  return pending.answeredBy
}
