import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Duplex, PassThrough } from 'node:stream'
import { expect, it } from 'vitest'
import { serveExec, type ExecOptions } from './serve-exec.ts'
import { encodeFrame, opcodes } from './websocket-frames.ts'
import type { RunningCommand } from '../commands/run-command.ts'
import type { TerminalSize } from './command-channels.ts'

/** A client's end of a WebSocket: what it sends, and the payloads of the frames that it gets. */
function openClient(protocol: string) {
  const toServer = new PassThrough()
  const fromServer = new PassThrough()
  let received = Buffer.alloc(0)
  fromServer.on('data', (bytes: Buffer) => (received = Buffer.concat([received, bytes])))
  const headers = {
    upgrade: 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-protocol': protocol,
  }
  return {
    request: {
      incoming: { headers } as unknown as IncomingMessage,
      socket: Duplex.from({ readable: toServer, writable: fromServer }),
      head: Buffer.alloc(0),
    },
    closed: once(fromServer, 'end'),
    send(...bytes: (number | string)[]) {
      const payload = Buffer.concat(bytes.map((one) => (typeof one === 'number' ? Buffer.of(one) : Buffer.from(one))))
      const frame = encodeFrame(opcodes.binary, payload)
      frame[1] = frame[1]! | 0x80
      // A mask of zeros leaves the bytes as they are.
      toServer.write(Buffer.concat([frame.subarray(0, 2), Buffer.alloc(4), frame.subarray(2)]))
    },
    vanish: () => toServer.end(),
    /** The head of the answer, and then the frames: opcode, channel, text. */
    heard(): { head: string; frames: (readonly [number, number | undefined, string])[] } {
      const end = received.indexOf('\r\n\r\n') + 4
      const frames = []
      for (let at = end; at < received.length;) {
        const isLong = received[at + 1] === 126
        const from = at + (isLong ? 4 : 2)
        const to = from + (isLong ? received.readUInt16BE(at + 2) : received[at + 1]!)
        frames.push([received[at]! & 15, received[from], received.toString('utf8', from + 1, to)] as const)
        at = to
      }
      return { head: received.toString('latin1', 0, end), frames }
    },
  }
}

function aCommand() {
  const streams = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const sizes: TerminalSize[] = []
  let exit: (code: number) => void = () => {}
  const exited = new Promise<number>((resolve) => (exit = resolve))
  const running: RunningCommand = { ...streams, exited, resize: (size) => sizes.push(size), kill: () => exit(137) }
  return { ...streams, sizes, exited, running, exit }
}

const options: ExecOptions = { command: ['x'], stdin: true, stdout: true, stderr: true, tty: false }

it('serveExec() carries the streams of a command, sizes, and how it ended', async () => {
  const client = openClient('v5.channel.k8s.io, v4.channel.k8s.io')
  const command = aCommand()
  const served = serveExec(client.request, options, () => command.running)
  client.send(4, '{"Width":80,"Height":24}')
  client.send(0, 'hello')
  client.send(255, 0)
  const input = await command.stdin.toArray()
  expect(Buffer.concat(input as Buffer[]).toString()).toBe('hello')
  expect(command.sizes).toEqual([{ columns: 80, rows: 24 }])
  command.stdout.end('out')
  command.stderr.end('err')
  command.exit(3)
  await served
  await client.closed
  const { head, frames } = client.heard()
  expect(head).toMatch(/^HTTP\/1\.1 101 [\s\S]*Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=\r\n/)
  expect(head).toContain('Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n')
  expect(frames).toContainEqual([opcodes.binary, 1, 'out'])
  expect(frames).toContainEqual([opcodes.binary, 2, 'err'])
  const [, channel, status] = frames.at(-2)!
  expect(channel).toBe(3)
  expect(JSON.parse(status)).toMatchObject({
    status: 'Failure',
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: '3' }] },
  })
  expect(frames.at(-1)?.[0]).toBe(opcodes.close)
})

it('serveExec() ends the command when its client goes away', async () => {
  const client = openClient('v5.channel.k8s.io')
  const command = aCommand()
  const served = serveExec(client.request, options, () => command.running)
  client.vanish()
  expect(await command.exited).toBe(137)
  await served
})

it('serveExec() says what is wrong with a command, and refuses a protocol that it does not speak', async () => {
  const client = openClient('v5.channel.k8s.io')
  await serveExec(client.request, options, () => {
    throw new Error('there is no room')
  })
  await client.closed
  expect(JSON.parse(client.heard().frames[0]![2])).toMatchObject({ status: 'Failure', message: 'there is no room' })
  const stranger = openClient('base64.channel.k8s.io')
  await expect(serveExec(stranger.request, options, () => aCommand().running)).rejects.toThrow(
    'the client offers base64.channel.k8s.io',
  )
})
