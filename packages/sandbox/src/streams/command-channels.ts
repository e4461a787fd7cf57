// What a remote command and its client send each other: three streams, sizes of the terminal, and how it ended. Over a
// WebSocket each message begins with the number of its channel; over SPDY each channel is a stream.

import { PassThrough, Writable, type Duplex, type Readable } from 'node:stream'
import { serveSpdy, type SpdyStream } from './spdy.ts'
import type { WebSocket } from 'ws'

export interface ChannelOptions {
  readonly stdin: boolean
  readonly stdout: boolean
  readonly stderr: boolean
  readonly tty: boolean
}

export interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

export interface CommandChannels {
  readonly stdin: Readable | undefined
  readonly stdout: Writable | undefined
  readonly stderr: Writable | undefined
  /** Reports the terminal's size, now and whenever it changes. */
  onResize(listener: (size: TerminalSize) => void): void
  /** Reports how the command ended, and closes the connection. The outputs must have ended. */
  finish(status: object): void
  /** Aborted when the client is gone. */
  readonly gone: AbortSignal
}

const CLOSE_NORMAL = 1000
const numbers = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const

export function openWebSocketChannels(webSocket: WebSocket, options: ChannelOptions): CommandChannels {
  const stdin = new PassThrough()
  const gone = new AbortController()
  let size: TerminalSize | undefined
  let onSize: (size: TerminalSize) => void = (first) => (size = first)
  stdin.on('drain', () => webSocket.resume())
  webSocket.on('message', (message: Buffer) => {
    const data = message.subarray(1)
    if (message[0] === numbers.stdin) {
      if (options.stdin && stdin.writable && data.length > 0 && !stdin.write(data)) webSocket.pause()
    } else if (message[0] === numbers.close && data[0] === numbers.stdin) stdin.end()
    else if (message[0] === numbers.resize) for (const each of parseSizes(data.toString())) onSize(each)
  })
  webSocket.on('close', () => {
    stdin.end()
    gone.abort()
  })
  const output = (channel: number): Writable =>
    new Writable({
      write: (chunk: Buffer, _, done) => webSocket.send(Buffer.concat([Buffer.of(channel), chunk]), () => done()),
    })
  return {
    stdin: options.stdin ? stdin : undefined,
    stdout: options.stdout ? output(numbers.stdout) : undefined,
    stderr: options.stderr ? output(numbers.stderr) : undefined,
    onResize(listener) {
      onSize = listener
      if (size !== undefined) listener(size)
    },
    finish(status) {
      webSocket.send(Buffer.concat([Buffer.of(numbers.error), Buffer.from(JSON.stringify(status))]))
      webSocket.close(CLOSE_NORMAL)
    },
    gone: gone.signal,
  }
}

/** Resolves when the client has opened all streams that it asked for; rejects when it goes away before. */
export function openSpdyChannels(socket: Duplex, head: Buffer, options: ChannelOptions): Promise<CommandChannels> {
  const expected = ['error', ...(['stdin', 'stdout', 'stderr'] as const).filter((name) => options[name])]
  if (options.tty) expected.push('resize')
  const streams = new Map<string, SpdyStream>()
  const gone = new AbortController()
  return new Promise((resolve, reject) => {
    const onStream = (stream: SpdyStream): void => {
      streams.set(stream.headers.get('streamtype') ?? '', stream)
      if (expected.every((name) => streams.has(name))) resolve(spdyChannels(socket, streams, gone.signal))
    }
    void serveSpdy(socket, head, onStream).then(() => {
      gone.abort()
      reject(new Error('the client went away'))
    })
  })
}

function spdyChannels(socket: Duplex, streams: ReadonlyMap<string, SpdyStream>, gone: AbortSignal): CommandChannels {
  return {
    stdin: streams.get('stdin'),
    stdout: streams.get('stdout'),
    stderr: streams.get('stderr'),
    onResize: (listener) =>
      streams.get('resize')?.on('data', (text: Buffer) => parseSizes(text.toString()).forEach(listener)),
    finish: (status) => streams.get('error')?.end(JSON.stringify(status), () => socket.end()),
    gone,
  }
}

/** `{"Width":80,"Height":24}`, one or several in a row. */
export function parseSizes(text: string): TerminalSize[] {
  return [...text.matchAll(/\{[^}]*\}/g)].flatMap(([one]) => {
    try {
      const { Width: columns, Height: rows } = JSON.parse(one) as { Width?: number; Height?: number }
      return columns === undefined || rows === undefined ? [] : [{ columns, rows }]
    } catch {
      return []
    }
  })
}
