// Objects as large as etcd takes them, through real connections: they come in a list and as events, small changes follow, no watch
// ends, nothing is listed again, and the memory that they took is given back.

import { beforeAll, describe, expect, test } from 'vitest'
import { TestApiServer } from '../../test/support/api-server/api-server.ts'
import { createCertificates, type TestCertificates } from '../../test/support/api-server/certificates.ts'
import { protobuf } from '../../test/support/api-server/encodings.ts'
import { resourceOf, type ApiObject } from '../../test/support/api-server/objects.ts'
import { quietLog } from '../../test/support/api-server/quiet-log.ts'
import { RecordingHandler } from '../../test/support/api-server/recording-handler.ts'
import { eventually } from '../../test/support/eventually.ts'
import { bytesInBuffers } from '../../test/support/kept-bytes.ts'
import type { ClusterAccess } from './access/cluster-access.ts'
import { JSON_TYPE, PROTOBUF } from './encoding/codec.ts'
import { endpointSlices } from './objects/endpoint-slice.ts'
import { endpoints } from './objects/endpoints.ts'
import { nodes } from './objects/node.ts'
import { serviceCidrs } from './objects/service-cidr.ts'
import { services } from './objects/service.ts'
import { runReflector } from './reflector.ts'
import type { Resource } from './resource.ts'
import { Transport } from './transport.ts'

/** What etcd takes, but for some room for names. */
const MOST_BYTES = 1.5 * 1024 * 1024 - 4096
const CHANGES = 100
/** Each of the two watches may keep a buffer of a megabyte. One that grew for the largest object has three and more. */
const ROOM = 3 << 20

const ip = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i))

/** Kinds, and what fills an object of each with n things of which we keep every one. */
const kinds: readonly (readonly [Resource<unknown>, (n: number) => Record<string, unknown>])[] = [
  [services, (n) => ({ spec: { clusterIP: '10.0.0.1', loadBalancerSourceRanges: times(n, (i) => `${ip(i)}/32`) } })],
  [
    endpointSlices,
    (n) => ({ addressType: 'IPv4', endpoints: times(n, (i) => ({ addresses: [ip(i)], conditions: { ready: true } })) }),
  ],
  [endpoints, (n) => ({ subsets: [{ addresses: times(n, (i) => ({ ip: ip(i) })), ports: [{ port: 80 }] }] })],
  [nodes, (n) => ({ status: { addresses: times(n, (i) => ({ type: 'InternalIP', address: ip(i) })) } })],
  [serviceCidrs, (n) => ({ spec: { cidrs: times(n, (i) => `${ip(i)}/32`) } })],
]

function objectOf(kind: string, name: string, fields: Record<string, unknown>, annotation = ''): ApiObject {
  return { kind, metadata: { name, annotations: { text: annotation } }, ...fields }
}

/** As many things as fit, or an annotation as long as fits: the two ways to be large. */
function largest(kind: string, fill: (n: number) => Record<string, unknown>, by: 'things' | 'annotation'): ApiObject {
  if (by === 'annotation') return objectOf(kind, 'large', fill(1), 'x'.repeat(MOST_BYTES))
  const sizeOf = (n: number) => protobuf.frame('ADDED', objectOf(kind, 'large', fill(n))).length
  const each = (sizeOf(2000) - sizeOf(1000)) / 1000
  return objectOf(kind, 'large', fill(Math.floor(MOST_BYTES / each)))
}

const cases = kinds.map(([resource, fill]) => {
  const { kind } = resource
  const large = { things: largest(kind, fill, 'things'), annotation: largest(kind, fill, 'annotation') }
  return { kind, resource, fill, large }
})

let certificates: TestCertificates
beforeAll(() => {
  certificates = createCertificates()
})

interface Wish {
  readonly accept: string
  readonly scheme: 'http' | 'https'
}

/** A server and a client of it. */
async function open({ accept, scheme }: Wish): Promise<{ server: TestApiServer; client: Transport }> {
  const { ca, server: pair } = certificates
  const server = await TestApiServer.start(scheme === 'https' ? { tls: pair } : {})
  const access: ClusterAccess = {
    server: new URL(server.url),
    tls: { ca: { data: Buffer.from(ca) }, clientCertificate: undefined, serverName: undefined, verify: true },
    authentication: { type: 'anonymous' },
    impersonation: {},
    proxyUrl: undefined,
  }
  const log = quietLog()
  return { server, client: new Transport({ access, userAgent: 'test', accept, limits: { qps: -1, burst: 0 }, log }) }
}

const ways: Wish[] = [JSON_TYPE, PROTOBUF].flatMap((accept) => [
  { accept, scheme: 'http' },
  { accept, scheme: 'https' },
])

describe.each(ways)('over $scheme in $accept', (way) => {
  test.each(cases)('the largest $kind is listed, comes, changes and goes', async ({ kind, resource, fill, large }) => {
    const { server, client } = await open(way)
    const { store } = server
    const log = quietLog()
    const stop = new AbortController()
    const running: Promise<void>[] = []
    const seen: RecordingHandler<unknown>[] = []
    const key = (name: string) => (resourceOf(large.things).namespaced ? `default/${name}` : name)
    const follow = async () => {
      const handler = new RecordingHandler<unknown>()
      seen.push(handler)
      running.push(runReflector({ client, resource, handler, log, signal: stop.signal }))
      await eventually('the watch is open', () => (server.watchCount() === seen.length ? undefined : 'not yet'))
    }
    const allSee = (name: string, isThere: boolean) =>
      eventually(`${name} has ${isThere ? 'come' : 'gone'}`, () =>
        seen.every(({ objects }) => objects.has(key(name)) === isThere) ? undefined : log.messages().join(', '),
      )
    let rounds = 0
    const changeOthers = async () => {
      const round = ++rounds
      for (let i = 0; i < CHANGES; i++) store.apply(objectOf(kind, 'small', fill(1), `${round} ${i}`))
      store.apply(objectOf(kind, `last-${round}`, fill(1)))
      await allSee(`last-${round}`, true)
    }
    /** What is left when the server and this test remember nothing that was large. */
    const buffered = () => {
      store.compact()
      for (const handler of seen) handler.clear()
      return bytesInBuffers()
    }
    try {
      await follow()
      await changeOthers()
      const before = buffered()
      for (const by of ['things', 'annotation'] as const) {
        store.apply(large[by])
        await changeOthers()
      }
      store.apply(large.things)
      await follow()
      await allSee('large', true)
      await changeOthers()
      store.delete(resourceOf(large.things), key('large'))
      await allSee('large', false)
      await changeOthers()
      await eventually('memory has gone back', () => {
        const more = buffered() - before
        return more < ROOM ? undefined : `${more} bytes are kept`
      })
      expect(server.requests.map(({ query }) => query['watch'] ?? 'list')).toEqual(['list', 'true', 'list', 'true'])
      expect(log.messages('error')).toEqual([])
      expect(server.requests[0]?.headers.accept).toBe(way.accept)
    } finally {
      stop.abort()
      await Promise.all(running)
      client.close()
      await server.stop()
    }
  })
})
