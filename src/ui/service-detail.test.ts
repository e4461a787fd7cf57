import { expect, test } from 'vitest'
import { nodeAddresses, peer } from '../../test/support/addresses.ts'
import { aService, aSlice } from '../../test/support/builders.ts'
import { decodeObjects, nodeViewOf } from '../../test/support/planned-node.ts'
import { plannedWalkables } from '../../test/support/planned-walkable.ts'
import type { KernelState } from '../diagnose/explain/explain.ts'
import { decideAll, type Known } from '../diagnose/explain/known.ts'
import type { Family } from '../lib/ip.ts'
import { modeNamed } from '../modes/all.ts'
import { planServiceDetail } from './service-detail.ts'

const web = aService({ name: 'web', type: 'NodePort', ports: [{ name: 'http', port: 80, nodePort: 30080 }] })
const known: Known = {
  source: 'a test',
  hasObjects: true,
  mode: modeNamed('nftables'),
  nodes: { 4: nodeViewOf(4, {}, ['primary']) },
  machineAddresses: nodeAddresses,
  ...decodeObjects([
    web,
    aSlice(web, ['localA', { pod: 'localB', ready: false }, 'remoteA'], {
      ports: [{ name: 'http', protocol: 'TCP', port: 8080 }],
    }),
  ]),
  allowExternalIPs: true,
  localhostNodePorts: true,
  connectRetry: false,
  ejected: new Map(),
  otherNodes: [{ name: peer.name, addresses: [peer.ip[4]] }],
  pods: [],
}

async function kernels(of: Known): Promise<Map<Family, KernelState>> {
  const decided = decideAll(of, 4)!
  const walkable = await plannedWalkables.nftables(decided.node, [...decided.model.views()])
  return new Map([[4, { kind: 'walkable', walkable, when: 'planned', nowMs: 0 }]])
}

const question = { namespace: 'default', name: 'web' }

test('frontends and backends are linked with what their packets meet, and back', async () => {
  const detail = planServiceDetail(known, question, await kernels(known))
  expect(detail.kernel).toMatchObject([{ family: 4, error: null, differences: [] }])
  expect(detail.frontends.map(({ kind, id }) => [kind, id])).toEqual([
    ['clusterIP', expect.stringMatching(/^tcp 10\..*:80$/) as string],
    ['nodePort', 'tcp *:30080'],
  ])
  const [first, second, third] = detail.backends
  expect([first?.eligible, second?.eligible, second?.why, third?.eligible]).toEqual([true, false, 'not ready', true])
  expect(second?.objects).toEqual([])
  for (const { id, objects } of detail.frontends) {
    const linked = detail.objects.filter(({ frontends }) => frontends.includes(id)).map((each) => each.id)
    expect(objects).toEqual(linked)
    expect(objects.length).toBeGreaterThan(3)
  }
  // The element that leads to one backend is linked with that one alone.
  const own = detail.objects.filter(({ backends }) => backends.length === 1 && backends[0] === first!.id)
  expect(own.some(({ found }) => found.join().includes(first!.address.replace(':', ' . ')))).toBe(true)
  expect(new Set(detail.objects.map(({ id }) => id)).size).toBe(detail.objects.length)
})

test('where the kernel does something else, that is said', async () => {
  const less = { ...known, slices: known.slices.map((slice) => ({ ...slice, endpoints: slice.endpoints.slice(0, 1) })) }
  const { kernel } = planServiceDetail(known, question, await kernels(less))
  expect(kernel[0]?.differences.length).toBeGreaterThan(0)
})

test('without a kernel there is what was decided, and with the wrong name nothing', () => {
  const { kernel, objects, backends } = planServiceDetail(known, question, new Map())
  expect(kernel).toMatchObject([{ error: 'not looked at' }])
  expect([objects.length, backends.length]).toEqual([0, 3])
  expect(() => planServiceDetail(known, { ...question, name: 'wbe' }, new Map())).toThrow(
    'There is no Service default/wbe',
  )
})
