// Traffic for the bench of the userspace mode; a program of its own, for it runs in other namespaces.
//   node userspace-load.js serve PORT
//   node userspace-load.js short HOST PORT CONNECTIONS
//   node userspace-load.js large HOST PORT BYTES STREAMS
//   node userspace-load.js idle HOST PORT CONNECTIONS      (until its input ends)

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

const CHUNK = Buffer.alloc(256 * 1024, 'x')
const ANSWER = Buffer.alloc(100, 'y')
const AT_ONCE = 32

const [command = '', host = '', ...numbers] = process.argv.slice(2)
const [port = 0, amount = 0, streams = 1] = numbers.map(Number)

const commands: Readonly<Record<string, () => Promise<void>>> = {
  serve: () => serve(Number(host)),
  short: () => connectOften(amount),
  large: () => fetchMuch(amount, streams),
  idle: () => stayConnected(amount),
}

await commands[command]!()

/** `S...` is answered and ended; `L<bytes>` gets so many bytes; anything else is kept open. */
async function serve(servedPort: number): Promise<void> {
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    socket.once('data', (request) => {
      if (request[0] === 0x53) socket.end(ANSWER)
      else if (request[0] === 0x4c) void send(socket, Number(request.subarray(1).toString()))
    })
  })
  server.listen(servedPort, '0.0.0.0', 4096)
  await once(server, 'listening')
  console.log('ready')
}

async function send(socket: Socket, bytes: number): Promise<void> {
  for (let left = bytes; left > 0 && !socket.destroyed; left -= CHUNK.length) {
    if (!socket.write(left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left))) await once(socket, 'drain')
  }
  socket.end()
}

async function connectOften(connections: number): Promise<void> {
  let started = 0
  const worker = async () => {
    while (started++ < connections) await oneRequest()
  }
  await Promise.all(Array.from({ length: AT_ONCE }, worker))
}

async function oneRequest(): Promise<void> {
  const socket = connect(port, host)
  let received = 0
  socket.on('data', (data) => (received += data.length))
  socket.write(`S${'a'.repeat(63)}`)
  await once(socket, 'close')
  if (received !== ANSWER.length) throw new Error(`Cannot count this: ${received} bytes came back`)
}

async function fetchMuch(bytes: number, count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async () => {
      let received = 0
      const onread = {
        buffer: Buffer.alloc(512 * 1024),
        callback: (length: number) => {
          received += length
          return true
        },
      }
      const socket = connect({ host, port, onread })
      socket.write(`L${bytes}`)
      await once(socket, 'close')
      if (received !== bytes) throw new Error(`Cannot count this: ${received} bytes of ${bytes} came`)
    }),
  )
}

async function stayConnected(connections: number): Promise<void> {
  for (let i = 0; i < connections; i += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, connections - i) }, () => connect(port, host))
    await Promise.all(some.map((socket) => once(socket, 'connect')))
    for (const socket of some) socket.write('I')
  }
  console.log('connected')
  process.stdin.resume()
  await once(process.stdin, 'end')
  process.exit(0)
}
