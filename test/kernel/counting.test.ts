// The table that counts while a client looks, in a real kernel with real connections.

import { asBytes, type Bytes } from '../../src/lib/ip.ts'
import { createServer, connect, type AddressInfo } from 'node:net'
import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { addressField, portField, protocolField } from '../../src/nftables/fields.ts'
import { COUNTING_TABLE } from '../../src/traffic/counting-table.ts'
import { Counting, endCounting } from '../../src/traffic/open-counting.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { eventually } from '../support/eventually.ts'
import { isRoot, listWithNft, loadWithNft } from '../support/nft.ts'

const open = { frontends: new Set<Bytes>(), ports: new Set<Bytes>(), guarded: new Map<Bytes, never>() }
const key = (address: string) => asBytes(addressField(address) + protocolField('UDP') + portField(53))

beforeAll(() => {
  if (!isRoot) return
  unshareNetwork()
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
})

describe.runIf(isRoot)('counting', () => {
  it.each([
    [4, '10.9.9.9', '127.0.0.1'],
    [6, 'fd00::9', '::1'],
  ] as const)('tells connections, packets and bytes of a pair, for IPv%d', async (family, vip, host) => {
    const server = createServer((socket) => socket.end('x'.repeat(100_000))).listen(0, host)
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const ip = family === 4 ? 'ip' : 'ip6'
    const to = family === 4 ? `${host}:${port}` : `[${host}]:${port}`
    loadWithNft(
      `table ${ip} to-server { chain o { type nat hook output priority -100; ${ip} daddr ${vip} tcp dport 80 dnat to ${to}; }; }`,
    )
    execFileSync('ip', ['route', 'replace', 'local', `${vip}/${family === 4 ? 32 : 128}`, 'dev', 'lo'])
    const counting = new Counting(family, 1000)
    for (let i = 0; i < 3; i++) {
      await new Promise<void>((resolve, reject) => {
        connect(80, vip).on('error', reject).on('end', resolve).resume()
      })
    }
    await eventually('all of it is counted', async () => {
      const { pairs, total } = await counting.read()
      const [pair, ...others] = pairs
      if (pair === undefined || others.length > 0) return `${pairs.length} pairs`
      expect(pair).toMatchObject({
        protocol: 'TCP',
        frontend: { address: vip, port: 80 },
        backend: { address: host, port },
      })
      expect(pair.begun).toBe(3)
      const { begun, sentPackets, sentBytes, receivedPackets, receivedBytes } = pair
      // The total is read a moment later: the last packets may have come in between.
      const ofPair = { begun, sentPackets, sentBytes, receivedPackets, receivedBytes }
      if (!isDeepStrictEqual(total, ofPair)) return `${JSON.stringify(total)} beside ${JSON.stringify(ofPair)}`
      return receivedBytes > 300_000 && sentPackets > 9 ? undefined : JSON.stringify(pair)
    })
    counting.close()
    expect(listWithNft()).not.toContain(COUNTING_TABLE)
    server.close()
  })

  it('tells what came to frontends that refuse', async () => {
    const counting = new Counting(4, 1000)
    counting.follow({
      ...open,
      frontends: new Set([key('127.0.0.9'), key('127.0.0.10')]),
    })
    counting.follow({
      ...open,
      frontends: new Set([key('127.0.0.9')]),
      ports: new Set([asBytes(protocolField('UDP') + portField(30053))]),
    })
    const socket = createSocket('udp4')
    const send = (port: number, address: string) =>
      new Promise((resolve) => socket.send('hello', port, address, resolve))
    for (const address of ['127.0.0.9', '127.0.0.9', '127.0.0.10']) await send(53, address)
    await send(30053, '127.0.0.1')
    const { refusals } = await counting.read()
    expect(refusals).toEqual([
      { protocol: 'UDP', address: '127.0.0.9', port: 53, packets: 2 },
      { protocol: 'UDP', address: undefined, port: 30053, packets: 1 },
    ])
    socket.close()
    counting.close()
  })

  it('tells those that are refused from those that are served', async () => {
    // As a Local policy without local endpoints does: some are translated, and the others are not.
    loadWithNft(
      'table ip split { chain o { type nat hook output priority -100; ip saddr 127.0.0.5 ip daddr 127.0.0.9 udp dport 53 dnat to 127.0.0.1:9; }; }',
    )
    // As source ranges do in the mode nftables: at once. In the mode iptables they come farther.
    loadWithNft(
      'table ip guard { chain o { type filter hook output priority -110; ip saddr 127.0.0.6 ip daddr 127.0.0.20 drop; }; }',
    )
    const counting = new Counting(4, 1000)
    const range = { first: addressField('127.0.0.4'), last: addressField('127.0.0.5') }
    const guarded = new Map(['127.0.0.20', '127.0.0.21', '127.0.0.22'].map((address) => [key(address), [range]]))
    const frontends = new Set(['127.0.0.9', '127.0.0.22'].map(key))
    counting.follow({ ...open, frontends, guarded })
    for (const [from, times] of [
      ['127.0.0.5', 1],
      ['127.0.0.6', 2],
    ] as const) {
      const socket = createSocket('udp4')
      await new Promise<void>((resolve) => socket.bind(0, from, resolve))
      for (const address of ['127.0.0.9', '127.0.0.20', '127.0.0.21', '127.0.0.22']) {
        for (let i = 0; i < times; i++) {
          // What is dropped on its way out is told to the sender.
          await new Promise<void>((resolve) => socket.send('hello', 53, address, () => resolve()))
        }
      }
      socket.close()
    }
    const packets = new Map((await counting.read()).refusals.map((each) => [each.address, each.packets]))
    expect(Object.fromEntries(packets)).toEqual({
      '127.0.0.9': 2,
      '127.0.0.20': 2,
      '127.0.0.21': 2,
      // It refuses everybody: one that is allowed, and two that are not, each once.
      '127.0.0.22': 3,
    })
    counting.follow({
      ...open,
      guarded: new Map([[key('127.0.0.20'), [{ ...range, last: addressField('127.0.0.6') }]]]),
    })
    const socket = createSocket('udp4')
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.6', resolve))
    await new Promise<void>((resolve) => socket.send('hello', 53, '127.0.0.20', () => resolve()))
    socket.close()
    const { refusals } = await counting.read()
    expect(refusals.find(({ address }) => address === '127.0.0.20')?.packets).toBe(2)
    counting.close()
  })

  it('counts what has no room in the total alone', async () => {
    const server = createServer((socket) => socket.end('x')).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    loadWithNft(
      `table ip many { chain o { type nat hook output priority -101; ip daddr 10.8.8.0/24 tcp dport 80 dnat to 127.0.0.1:${port}; }; }`,
    )
    execFileSync('ip', ['route', 'replace', 'local', '10.8.8.0/24', 'dev', 'lo'])
    const counting = new Counting(4, 4)
    for (let i = 1; i <= 8; i++) {
      await new Promise<void>((resolve, reject) => {
        connect(80, `10.8.8.${i}`).on('error', reject).on('end', resolve).resume()
      })
    }
    const { pairs, total } = await counting.read()
    expect([pairs.length, total.begun]).toEqual([4, 8])
    counting.close()
    server.close()
  })

  it('that a killed proxy left is ended', async () => {
    const left = new Counting(4, 10)
    expect(listWithNft()).toContain(COUNTING_TABLE)
    endCounting([4, 6])
    expect(listWithNft()).not.toContain(COUNTING_TABLE)
    await expect(left.read()).rejects.toThrow(/ENOENT/)
  })
})
