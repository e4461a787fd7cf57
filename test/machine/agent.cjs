// One in each network namespace of the guest: it serves as a pod, and connects as a client. A line of JSON is a question, a line an answer.

const dgram = require('node:dgram')
const net = require('node:net')
const { createInterface } = require('node:readline')

const [, , name] = process.argv
const server = net.createServer((socket) => socket.end(name)).listen(8080, '0.0.0.0')
const echo = dgram.createSocket('udp4').on('message', (_, { port, address }) => echo.send(name, port, address))
echo.bind(8053)

const ask = {
  /** As many connections one after the other; answers who answered, or the error. */
  async tcp({ host, port, count }) {
    const answers = []
    for (let i = 0; i < count; i++) answers.push(await connect(host, port))
    return answers
  },
  async udp({ host, port, count }) {
    const answers = []
    for (let i = 0; i < count; i++) answers.push(await send(host, port))
    return answers
  },
}

function connect(host, port) {
  return new Promise((resolve) => {
    let text = ''
    const socket = net.connect({ host, port, timeout: 10_000 })
    socket.setEncoding('utf8').on('data', (chunk) => (text += chunk))
    socket.once('end', () => resolve(text)).once('error', ({ code }) => resolve(code))
    socket.once('timeout', () => {
      socket.destroy()
      resolve('no answer')
    })
  })
}

function send(host, port) {
  return new Promise((resolve) => {
    const socket = dgram.createSocket('udp4')
    const finish = (answer) => {
      clearTimeout(timer)
      socket.close()
      resolve(answer)
    }
    const timer = setTimeout(() => finish('no answer'), 10_000)
    socket.once('message', (message) => finish(message.toString())).once('error', ({ code }) => finish(code))
    socket.connect(port, host, () => socket.send('?'))
  })
}

server.once('listening', () => console.log('"ready"'))
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { kind, ...rest } = JSON.parse(line)
  console.log(JSON.stringify(await ask[kind](rest)))
})
