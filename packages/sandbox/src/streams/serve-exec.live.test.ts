import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterEach, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { serveExec, type ExecOptions } from './serve-exec.ts'
import type { RunningCommand } from '../commands/run-command.ts'
import type { TerminalSize } from './command-channels.ts'
import type { UpgradeRequest } from './upgrade.ts'

const opened: { close(): unknown }[] = []
afterEach(() => opened.splice(0).forEach((each) => each.close()))

/** A client's WebSocket, and the request of which the server learns. */
async function openClient(protocols: string[]) {
  const server = createServer().listen(0, '127.0.0.1')
  opened.push(server)
  await once(server, 'listening')
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, protocols)
  socket.on('error', () => {})
  const messages: (readonly [number | undefined, string])[] = []
  socket.on('message', (bytes: Buffer) => messages.push([bytes[0], bytes.toString('utf8', 1)]))
  const [incoming, transport, head] = (await once(server, 'upgrade')) as [
    UpgradeRequest['incoming'],
    UpgradeRequest['socket'],
    Buffer,
  ]
  return {
    request: { incoming, socket: transport, head },
    socket,
    /** Channel and text of each message. */
    messages,
    closed: new Promise<number>((resolve) => socket.on('close', resolve)),
    send(...bytes: (number | string)[]) {
      const parts = bytes.map((one) => (typeof one === 'number' ? Buffer.of(one) : Buffer.from(one)))
      socket.send(Buffer.concat(parts))
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
  const client = await openClient(['v5.channel.k8s.io', 'v4.channel.k8s.io'])
  const command = aCommand()
  const served = serveExec(client.request, options, () => command.running)
  await once(client.socket, 'open')
  expect(client.socket.protocol).toBe('v5.channel.k8s.io')
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
  expect(await client.closed).toBe(1000)
  expect(client.messages).toContainEqual([1, 'out'])
  expect(client.messages).toContainEqual([2, 'err'])
  const [channel, status] = client.messages.at(-1)!
  expect(channel).toBe(3)
  expect(JSON.parse(status)).toMatchObject({
    status: 'Failure',
    reason: 'NonZeroExitCode',
    details: { causes: [{ reason: 'ExitCode', message: '3' }] },
  })
})

it('serveExec() ends the command when its client goes away', async () => {
  const client = await openClient(['v5.channel.k8s.io'])
  const command = aCommand()
  const served = serveExec(client.request, options, () => command.running)
  await once(client.socket, 'open')
  client.socket.terminate()
  expect(await command.exited).toBe(137)
  await served
})

it('serveExec() ends the command when its client breaks the protocol', async () => {
  const client = await openClient(['v5.channel.k8s.io'])
  const command = aCommand()
  const served = serveExec(client.request, options, () => command.running)
  await once(client.socket, 'open')
  // A frame of a client must be masked.
  ;(client.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(Buffer.of(0x82, 1, 0))
  expect(await command.exited).toBe(137)
  await served
})

it('serveExec() says what is wrong with a command, and refuses a protocol that it does not speak', async () => {
  const client = await openClient(['v5.channel.k8s.io'])
  await serveExec(client.request, options, () => {
    throw new Error('there is no room')
  })
  await client.closed
  expect(JSON.parse(client.messages[0]![1])).toMatchObject({ status: 'Failure', message: 'there is no room' })
  const stranger = await openClient(['base64.channel.k8s.io'])
  await expect(serveExec(stranger.request, options, () => aCommand().running)).rejects.toThrow(
    'the client offers base64.channel.k8s.io',
  )
  stranger.socket.terminate()
})
