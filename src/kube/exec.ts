// Runs a command in a pod, as `kubectl exec` does: over a WebSocket whose messages begin with the number of a channel.

import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import type { UpgradingClient } from './api-client.ts'
import { acceptKey, encodeFrame, MessageReader, opcodes } from './web-socket.ts'

const channels = { stdin: 0, stdout: 1, stderr: 2, error: 3, close: 255 } as const
/** v5 has a way to end the input; API servers before 1.30 have v4 only. */
const PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const

export interface ExecOptions {
  readonly namespace: string
  readonly pod: string
  /** The pod's first when absent. */
  readonly container?: string
  readonly command: readonly string[]
  readonly stdin?: boolean
  readonly onStdout: (bytes: Buffer) => void
  readonly onStderr?: (bytes: Buffer) => void
  readonly signal?: AbortSignal
}

/** How a command ended. */
export interface ExecEnd {
  /** Undefined when it was not the command that ended: the message says what did. */
  readonly exitCode: number | undefined
  readonly message: string
}

export interface ExecSession {
  /** Never rejects. */
  readonly ended: Promise<ExecEnd>
  /** To the standard input of the command. */
  write(bytes: Uint8Array | string): void
  /** Ends the standard input. Without v5 that takes the end of the session. */
  endInput(): void
  /** Gives the session up. */
  close(): void
}

/** Resolves when the API server has agreed to run the command. */
export async function openExec(client: UpgradingClient, options: ExecOptions): Promise<ExecSession> {
  const key = randomBytes(16).toString('base64')
  const { response, socket, head } = await client.upgrade({
    path: execPath(options),
    // A command's output is of no type that could be asked for: API servers answer 406 to any.
    accept: '*/*',
    headers: {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Key': key,
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Protocol': PROTOCOLS.join(', '),
    },
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  })
  if (response.headers['sec-websocket-accept'] !== acceptKey(key)) {
    socket.destroy()
    throw new Error(`Cannot run a command in pod ${options.pod}: ${client.server} does not speak WebSocket`)
  }
  const isV5 = response.headers['sec-websocket-protocol'] === PROTOCOLS[0]
  const reader = new MessageReader()
  let end: ExecEnd = { exitCode: undefined, message: 'the connection ended' }
  const send = (opcode: number, payload: Uint8Array): void => {
    if (socket.writable) socket.write(encodeFrame(opcode, payload))
  }
  const onBytes = (bytes: Buffer): void => {
    try {
      for (const { opcode, payload } of reader.push(bytes)) {
        if (opcode === opcodes.ping) send(opcodes.pong, payload)
        else if (opcode === opcodes.close) socket.end(encodeFrame(opcodes.close, payload.subarray(0, 2)))
        else if (payload[0] === channels.stdout) options.onStdout(payload.subarray(1))
        else if (payload[0] === channels.stderr) options.onStderr?.(payload.subarray(1))
        else if (payload[0] === channels.error) end = parseEnd(payload.subarray(1).toString())
      }
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }
  const ended = new Promise<ExecEnd>((resolve) => {
    socket.on('error', (error) => (end = { exitCode: undefined, message: error.message }))
    socket.on('close', () => resolve(end))
  })
  socket.on('data', onBytes)
  if (head.length > 0) onBytes(head)
  return {
    ended,
    write: (bytes) => send(opcodes.binary, Buffer.concat([Buffer.of(channels.stdin), Buffer.from(bytes)])),
    endInput: () => (isV5 ? send(opcodes.binary, Buffer.of(channels.close, channels.stdin)) : socket.end()),
    close: () => socket.destroy(),
  }
}

function execPath({ namespace, pod, container, command, stdin = false }: ExecOptions): string {
  const query = new URLSearchParams({ stdout: 'true', stderr: 'true' })
  if (stdin) query.set('stdin', 'true')
  if (container !== undefined) query.set('container', container)
  for (const word of command) query.append('command', word)
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}/exec?${query.toString()}`
}

/** The Status object that comes last. */
export function parseEnd(text: string): ExecEnd {
  try {
    const { status, message, reason, details } = JSON.parse(text) as {
      readonly status?: string
      readonly message?: string
      readonly reason?: string
      readonly details?: { readonly causes?: readonly { readonly reason?: string; readonly message?: string }[] }
    }
    if (status === 'Success') return { exitCode: 0, message: '' }
    const cause = reason === 'NonZeroExitCode' ? details?.causes?.find((each) => each.reason === 'ExitCode') : undefined
    return {
      exitCode: cause === undefined ? undefined : Number(cause.message),
      message: message ?? 'no reason given',
    }
  } catch {
    return { exitCode: undefined, message: text }
  }
}
