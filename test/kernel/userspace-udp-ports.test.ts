// UDP through the data path when this node has no port left from which to send.

import { execFileSync } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { aUdpBackend } from '../support/backends.ts'
import { eventually } from '../support/eventually.ts'
import { InlineDataPath } from '../support/inline-data-path.ts'
import { isRoot } from '../support/nft.ts'
import { patience } from '../support/patience.ts'

async function aSocket(port: number, address = '0.0.0.0'): Promise<Socket> {
  const socket = createSocket('udp4')
  socket.bind(port, address)
  await once(socket, 'listening')
  return socket
}

async function ask(client: Socket, port: number): Promise<string> {
  const answered = once(client, 'message') as Promise<[Buffer]>
  client.send('x', port, '127.0.0.1')
  const answer = await Promise.race([answered, sleep(300 * patience())])
  client.removeAllListeners('message')
  return answer === undefined ? '' : answer[0].toString()
}

describe.skipIf(!isRoot)('without a free port (needs root)', () => {
  beforeAll(() => {
    unshareNetwork()
    execFileSync('ip', ['link', 'set', 'lo', 'up'])
  })

  it('a client is turned away, and nothing is held against the backend', async () => {
    using path = new InlineDataPath()
    await using backend = await aUdpBackend('a')
    const contents = { backends: [backend], affinitySeconds: undefined }
    const { port, pool } = path.open(contents, { protocol: 'UDP' })
    const client = await aSocket(20_000, '127.0.0.1')
    execFileSync('sysctl', ['-q', '-w', 'net.ipv4.ip_local_port_range=20100 20101'])
    const others = [await aSocket(20_100), await aSocket(20_101)]
    expect(await ask(client, port)).toBe('')
    expect(path.warnings).toEqual(['Cannot connect to a backend: EAGAIN'])
    expect(pool.totals()).toMatchObject({ unserved: 1, failures: 0, active: 0 })
    expect(pool.backends()).toMatchObject([{ failures: 0 }])
    for (const other of others) other.close()
    await eventually('it is served', async () => ((await ask(client, port)) === 'a x' ? undefined : 'no answer'))
    client.close()
  })
})
