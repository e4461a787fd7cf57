// Endpoints that say which of them was reached, and a client that asks until the right one answers.

import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const ENDPOINT_PORT = 8080
const ATTEMPT_MS = 20

/** All addresses of endpoints are local; each answers with its own. Cluster IPs lead to the rules, and then nowhere. */
export async function serveAddresses(): Promise<AsyncDisposable> {
  const routes = [
    'address add 10.255.255.1/32 dev lo',
    'route add local 10.0.0.0/8 dev lo',
    'route add local 11.0.0.0/8 dev lo',
    // From the address of a pod: nothing has to be masqueraded.
    'route add 172.16.0.0/12 dev lo src 10.255.255.1',
  ]
  execFileSync('ip', ['-batch', '-'], { input: routes.join('\n') })
  const server = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.end(socket.localAddress ?? '')
  })
  server.listen(ENDPOINT_PORT, '0.0.0.0', 1024)
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

/** Connects again and again until the answer is right. */
export async function awaitAnswer(
  clusterIP: string,
  isRight: (from: string) => boolean,
  proxy: { readonly ended: string | undefined },
): Promise<void> {
  for (;;) {
    const from = await attempt(clusterIP)
    if (from !== undefined && isRight(from)) return
    if (proxy.ended !== undefined) throw new Error(`Cannot measure: the program ended (${proxy.ended})`)
    await sleep(1)
  }
}

/** Where the connection came out; undefined when it did not. */
function attempt(clusterIP: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: clusterIP, port: 80 })
    const timer = setTimeout(() => socket.destroy(), ATTEMPT_MS)
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk: string) => (text += chunk))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(text === '' ? undefined : text)
    })
  })
}
