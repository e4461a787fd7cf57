// `explain --send --sandbox`: the packet is sent by a pod of a sandbox, in its own network.

import { spawn } from 'node:child_process'
import type { networkInterfaces } from 'node:os'
import type { Sender } from '../diagnose/explain/send.ts'
import { canonicalIp } from '../lib/ip.ts'

export interface SandboxPod {
  readonly address: string
  readonly send: Sender
}

/** Rejects when there is no such sandbox, or no such pod in it. */
export async function findSandboxPod(sandbox: string, pod: string, family: 4 | 6): Promise<SandboxPod> {
  const found = JSON.parse(await runInPod(sandbox, pod, [ADDRESSES])) as ReturnType<typeof networkInterfaces>
  const all = Object.values(found).flatMap((each) => each ?? [])
  const own = all.find(
    ({ internal, address }) =>
      !internal && address.includes(':') === (family === 6) && !address.toLowerCase().startsWith('fe80:'),
  )
  const address = own && canonicalIp(own.address)
  if (address === undefined) throw new Error(`Cannot send from ${pod}: it has no address of IPv${family}`)
  return {
    address,
    send: ({ source, sourcePort, destination, destinationPort }, protocol, patienceMs) =>
      runInPod(sandbox, pod, [
        SEND,
        protocol,
        source,
        String(sourcePort),
        destination,
        String(destinationPort),
        String(patienceMs),
      ]),
  }
}

/** This program, which can enter the networks of a sandbox, runs Node there. */
function runInPod(sandbox: string, pod: string, [script, ...args]: readonly string[]): Promise<string> {
  const name = sandbox === '' ? [] : ['--name', sandbox]
  const command = [process.argv[1]!, 'sandbox', ...name, 'exec', pod, '--', process.execPath, '-e', script!, ...args]
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'pipe'] })
    let [out, complaint] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (out += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
    child.once('error', reject)
    // Not 'exit', after which there may be output that was not read yet.
    child.once('close', (code) => {
      if (code === 0) resolve(out.trim())
      else reject(new Error(`Cannot run in pod ${pod} of the sandbox: ${complaint.trim() || `status ${code}`}`))
    })
  })
}

const ADDRESSES = 'console.log(JSON.stringify(require("node:os").networkInterfaces()))'

/** The same as send.ts does from the node. */
const SEND = `
const [protocol, source, sourcePort, destination, destinationPort, patienceMs] = process.argv.slice(1)
const finish = (answer) => { console.log(answer); process.exit(0) }
const failed = ({ code, message }) => finish(code === 'ECONNREFUSED' ? 'refused' : code ?? message)
if (protocol === 'TCP') {
  setTimeout(() => finish('no answer within ' + patienceMs + ' ms'), Number(patienceMs))
  require('node:net')
    .connect({ host: destination, port: Number(destinationPort), localAddress: source, localPort: Number(sourcePort) })
    .once('connect', () => finish('connected'))
    .once('error', failed)
} else {
  setTimeout(() => finish('sent; no answer, which UDP does not promise'), patienceMs / 2)
  const socket = require('node:dgram').createSocket(source.includes(':') ? 'udp6' : 'udp4')
  socket.once('message', () => finish('answered')).once('error', failed)
  socket.bind({ address: source, port: Number(sourcePort) }, () =>
    socket.connect(Number(destinationPort), destination, () => socket.send('?')),
  )
}
`
