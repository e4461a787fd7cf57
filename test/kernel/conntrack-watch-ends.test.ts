// What the kernel tells of connections that begin and end, with real packets through a translation.

import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type EndEvent, watchEnds } from '../../src/conntrack/watch-ends.ts'
import { TCP_CONNTRACK_CLOSE, TCP_CONNTRACK_TIME_WAIT } from '../../src/conntrack/uapi.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { eventually } from '../support/eventually.ts'
import { isRoot, loadWithNft } from '../support/nft.ts'

const SERVICE = '10.96.0.1'
const ENDPOINT = '10.1.0.1'

describe.skipIf(!isRoot)('watchEnds() (needs root)', () => {
  const server = createServer((socket) => socket.on('data', () => socket.end('bye')))
  const events: EndEvent[] = []
  let watch: { close(): void }
  let port: number

  beforeAll(async () => {
    unshareNetwork()
    const ip = (...args: string[]) => execFileSync('ip', args)
    ip('link', 'set', 'lo', 'up')
    ip('address', 'add', `${ENDPOINT}/32`, 'dev', 'lo')
    ip('route', 'add', '10.96.0.0/16', 'dev', 'lo', 'src', ENDPOINT)
    await new Promise<void>((resolve) => server.listen(0, ENDPOINT, resolve))
    port = (server.address() as AddressInfo).port
    writeFileSync('/proc/sys/net/netfilter/nf_conntrack_acct', '1')
    const rules = `table ip t { chain c { type nat hook output priority -100;
      ip daddr ${SERVICE} tcp dport 80 dnat to ${ENDPOINT}:${port}
      ip daddr ${SERVICE} tcp dport 81 dnat to ${ENDPOINT}:1
      ip daddr ${SERVICE} udp dport 53 dnat to ${ENDPOINT}:5353
    }
    }`
    loadWithNft(rules)
    watch = watchEnds({ onEvent: (event) => events.push(event), onLost: () => {}, translatedOnly: true })
  })
  beforeEach(() => {
    events.length = 0
  })
  afterAll(() => {
    watch.close()
    server.close()
  })

  const arrived = (count: number) =>
    eventually(`${count} events`, () => (events.length >= count ? undefined : JSON.stringify(events)))

  it('a connection begins, closes, and nothing between is told', async () => {
    const client = connect(80, SERVICE)
    client.on('connect', () => client.write('hello'))
    client.resume()
    await once(client, 'close')
    await arrived(2)
    const [begun, closing] = events
    expect(begun).toMatchObject({
      kind: 'begun',
      family: 4,
      protocol: 6,
      original: { src: ENDPOINT, dst: SERVICE, dport: 80 },
      reply: { src: ENDPOINT, sport: port, dst: ENDPOINT },
      isAnswered: false,
    })
    expect(closing).toMatchObject({
      kind: 'closing',
      id: begun!.id,
      isAnswered: true,
      tcpState: TCP_CONNTRACK_TIME_WAIT,
    })
    // The kernel forgets it: that has been told.
    execFileSync('conntrack', ['-D', '-d', SERVICE], { stdio: 'ignore' })
    const second = connect(80, SERVICE)
    second.on('connect', () => second.write('hello'))
    second.resume()
    await once(second, 'close')
    await arrived(4)
    expect(events.map(({ kind }) => kind)).toEqual(['begun', 'closing', 'begun', 'closing'])
  })

  it('a connection that is refused is gone at once', async () => {
    const client = connect(81, SERVICE)
    await once(client, 'error')
    await arrived(2)
    expect(events).toMatchObject([
      { kind: 'begun', original: { dst: SERVICE, dport: 81 }, reply: { sport: 1 } },
      {
        kind: 'gone',
        isAnswered: false,
        tcpState: TCP_CONNTRACK_CLOSE,
        counts: { sentPackets: 1, receivedPackets: 1 },
      },
    ])
  })

  it('UDP is gone when the kernel forgets it, with what was counted', async () => {
    const client = createSocket('udp4')
    await new Promise((resolve) => client.send('hello', 53, SERVICE, resolve))
    await arrived(1)
    execFileSync('conntrack', ['-D', '-p', 'udp', '-d', SERVICE], { stdio: 'ignore' })
    await arrived(2)
    expect(events).toMatchObject([
      { kind: 'begun', protocol: 17, reply: { src: ENDPOINT, sport: 5353 } },
      { kind: 'gone', tcpState: undefined, counts: { sentPackets: 1, sentBytes: 33 } },
    ])
    client.close()
  })

  it('what no rule translates is not told', async () => {
    const direct = connect(port, ENDPOINT)
    await once(direct, 'connect')
    direct.destroy()
    const client = connect(81, SERVICE)
    await once(client, 'error')
    await arrived(2)
    expect(events.every(({ original }) => original.dst === SERVICE)).toBe(true)
  })
})
