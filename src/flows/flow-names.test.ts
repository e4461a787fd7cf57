import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { FlowNames } from './flow-names.ts'
import type { FlowRecord } from './flow-record.ts'

const record: FlowRecord = {
  timeMs: 0,
  event: 'begun',
  service: 'shop/web:http',
  protocol: 'TCP',
  client: { ip: '10.244.0.7', port: 40000 },
  frontend: { ip: '10.96.0.1', port: 80 },
  backend: { ip: '10.244.1.3', port: 8080 },
}

const slices = {
  items: [
    {
      endpoints: [
        { addresses: ['10.244.1.3'], nodeName: 'node-2', targetRef: { kind: 'Pod', namespace: 'shop', name: 'web-1' } },
        { addresses: ['not an address'], nodeName: 'node-2' },
        {},
      ],
    },
  ],
}
const pods = {
  items: [
    {
      metadata: { namespace: 'shop', name: 'client' },
      spec: { nodeName: 'node-1' },
      status: { podIPs: [{ ip: '10.244.0.7' }] },
    },
    { metadata: { name: 'host' }, spec: { hostNetwork: true }, status: { podIPs: [{ ip: '172.18.0.2' }] } },
  ],
}

function open(get: ((path: string) => Promise<unknown>) | undefined) {
  const clock = new ManualClock()
  const asked: string[] = []
  const names = new FlowNames({
    clock,
    nodeName: 'node-1',
    nodeAddresses: () => ['172.18.0.2'],
    mayBePod: (ip) => ip.startsWith('10.244.'),
    get: get && ((path) => (asked.push(path), get(path))),
  })
  return { clock, asked, names }
}

const answer = (path: string) => Promise.resolve(path.includes('endpointslices') ? slices : pods)

test('pods and nodes get their names, and each question is asked once', async () => {
  const { asked, names } = open(answer)
  names.want(record)
  names.want(record)
  await names.look()
  expect(names.withNames(record)).toMatchObject({
    client: { ip: '10.244.0.7', port: 40000, pod: 'shop/client', node: 'node-1' },
    backend: { ip: '10.244.1.3', port: 8080, pod: 'shop/web-1', node: 'node-2' },
  })
  names.want(record)
  await names.look()
  expect(asked).toEqual([
    '/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dweb&limit=100',
    '/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&limit=100',
  ])
  expect(names.problems).toEqual([])
})

test('the node has a name, and a client outside has none', async () => {
  const { asked, names } = open(answer)
  const from = (ip: string) => ({ ...record, backend: undefined, client: { ip, port: 1 } })
  for (const ip of ['172.18.0.2', '203.0.113.9']) names.want(from(ip))
  await names.look()
  expect(asked).toEqual([])
  expect(names.withNames(from('172.18.0.2')).client).toEqual({ ip: '172.18.0.2', port: 1, node: 'node-1' })
  expect(names.withNames(from('203.0.113.9')).client).toEqual({ ip: '203.0.113.9', port: 1 })
})

test('a list in several parts is read to its end', async () => {
  const { names } = open((path) =>
    Promise.resolve(path.includes('continue=') ? slices : { items: [], metadata: { continue: 'a b' } }),
  )
  names.want({ ...record, client: { ip: '1.2.3.4', port: 1 } })
  await names.look()
  expect(names.withNames(record).backend!.pod).toBe('shop/web-1')
})

test('an address that is new in a Service is asked for, not at once again', async () => {
  const { clock, asked, names } = open(() => Promise.resolve({ items: [] }))
  const of = { ...record, client: { ip: '1.2.3.4', port: 1 } }
  for (const waitMs of [0, 1000, 6000]) {
    await clock.advance(waitMs)
    names.want(of)
    await names.look()
  }
  expect(asked).toHaveLength(2)
})

test('without the right to list pods clients have no names, which is said; backends keep theirs', async () => {
  const { clock, asked, names } = open((path) =>
    path.includes('/pods') ? Promise.reject(Object.assign(new Error('forbidden'), { status: 403 })) : answer(path),
  )
  names.want(record)
  await names.look()
  await clock.advance(60_000)
  names.want(record)
  await names.look()
  expect(names.problems).toEqual([
    'no names of clients: the proxy may not list pods; deploy/components/flow-names gives it that right',
  ])
  expect(asked.filter((path) => path.includes('/pods'))).toHaveLength(1)
  expect(names.withNames(record).backend!.pod).toBe('shop/web-1')
})

test('without an API server there are addresses', async () => {
  const { names } = open(undefined)
  names.want(record)
  await names.look()
  expect(names.withNames(record)).toEqual(record)
  expect(names.problems).toEqual(['no names of pods: there is no API server to ask'])
})
