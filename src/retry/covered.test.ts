import { describe, expect, test } from 'vitest'
import { BackendList } from '../model/backend-list.ts'
import type { ServicePortView } from '../model/types.ts'
import { addressField, portField } from '../nftables/fields.ts'
import { aNodeView, cidr } from '../../test/support/arbitrary-views.ts'
import { BackendIndex, planCoveredFrontends, planNodePortAddresses } from './covered.ts'

const backends = [1, 2, 3].map((n) => ({ ip: `10.1.0.${n}`, port: 8080, isLocal: true }))
const all = BackendList.of(backends)
const first = BackendList.of(backends.slice(0, 1))

function aView(lists: ServicePortView['lists'], more: Partial<ServicePortView> = {}): ServicePortView {
  const route = { verdict: { kind: 'reject', reason: 'has no endpoints' }, masquerade: false } as const
  const frontend = { fromPods: route, fromNode: route, fromOthers: route, isSplit: false } as const
  const rest = { ...frontend, protocol: 'TCP', allowedSources: undefined, affinitySeconds: undefined } as const
  return {
    name: 'default/web',
    namespace: 'default',
    service: 'web',
    portName: '',
    protocol: 'TCP',
    frontends: [
      { kind: 'clusterIP', address: '10.2.0.1', port: 80, ...rest },
      { kind: 'nodePort', address: undefined, port: 30080, ...rest },
    ],
    lists,
    backends: lists.Cluster ?? BackendList.none,
    serving: [],
    connectRetry: true,
    ...more,
  }
}

const key = (address: string, port: number) => addressField(address) + portField(port)

describe('planCoveredFrontends()', () => {
  test('what a client dials, node ports on each address', () => {
    expect(planCoveredFrontends(aView({ Cluster: all }), ['10.3.0.1', '10.3.0.2'])).toEqual([
      key('10.2.0.1', 80),
      key('10.3.0.1', 30080),
      key('10.3.0.2', 30080),
    ])
  })

  test.for<[string, ServicePortView]>([
    ['has one backend', aView({ Cluster: first })],
    ['has one backend left', aView({ Cluster: first }, { ejected: backends.slice(1) })],
    ['has one backend on this node, for clients from outside', aView({ Cluster: all, Local: first })],
    ['has no backend', aView({})],
    ['did not ask for it', aView({ Cluster: all }, { connectRetry: undefined })],
    ['is UDP', aView({ Cluster: all }, { protocol: 'UDP' })],
  ])('nothing of a port that %s', ([, view]) => {
    expect(planCoveredFrontends(view, [])).toEqual([])
  })
})

test('planNodePortAddresses() has those of the model, or all of the machine but loopback, of the family', () => {
  const node = aNodeView({ family: 4, localDetector: { kind: 'cidr', cidrs: [cidr('10.1.0.0/16')] } })
  const machine = ['127.0.0.1', '10.3.0.1', 'fd03::1']
  expect(planNodePortAddresses({ ...node, nodePortAddresses: { kind: 'all' } }, machine)).toEqual(['10.3.0.1'])
  const only = { kind: 'only', addresses: ['10.3.0.7'], loopback: ['127.0.0.1'] } as const
  expect(planNodePortAddresses({ ...node, nodePortAddresses: only }, machine)).toEqual(['10.3.0.7', '127.0.0.1'])
})

test('BackendIndex has those that are ejected too, until their port is gone', () => {
  const index = new BackendIndex()
  const [one, second] = backends
  const view = aView({ Cluster: first }, { ejected: [second!] })
  index.add(view)
  index.add({ ...view, name: 'default/api' })
  expect(index.portsOf(second!)).toEqual(['default/web', 'default/api'])
  index.remove(view)
  expect(index.portsOf(second!)).toEqual(['default/api'])
  index.remove({ ...view, name: 'default/api' })
  expect(index.has(one!) || index.has(second!)).toBe(false)
})
