import { describe, expect, test } from 'vitest'
import type { Node } from '../kube/types.ts'
import { formatCidr } from '../lib/ip.ts'
import { nodeViewWarnings, planNodeView } from './node-view.ts'
import type { NodeFacts, NodeSettings } from './node-view.ts'

const settings: NodeSettings = {
  nodeName: 'node-a',
  bindAddress: '0.0.0.0',
  detectLocal: { mode: 'ClusterCIDR', clusterCIDRs: ['10.1.0.0/16'], bridgeInterface: '', interfaceNamePrefix: '' },
  nodePortAddresses: ['primary'],
  masqueradeAll: false,
  masqueradeBit: 14,
}
const node: Node = {
  name: 'node-a',
  zone: 'zone-a',
  addresses: [{ type: 'InternalIP', address: '192.168.0.1' }],
  podCIDRs: ['10.1.7.0/24'],
  deleting: false,
  taints: [],
}
const facts: NodeFacts = {
  node,
  machineAddresses: ['192.168.0.1', 'fd00::1'],
  serviceCidrs: ['10.3.0.0/16', 'fd02::/112', '10.2.0.0/16'],
}

describe('planNodeView()', () => {
  test('puts the node together for one family', () => {
    const { serviceCidrs, localDetector, ...view } = planNodeView(settings, facts, 4)
    expect(view).toEqual({
      family: 4,
      nodeName: 'node-a',
      nodeIp: '192.168.0.1',
      zone: 'zone-a',
      masqueradeAll: false,
      masqueradeMark: 0x4000,
      nodePortAddresses: { kind: 'only', addresses: ['192.168.0.1'] },
    })
    expect(serviceCidrs.map(formatCidr)).toEqual(['10.2.0.0/16', '10.3.0.0/16'])
    expect(localDetector.kind).toBe('cidr')
  })

  test('has loopback as its address, all node ports and no pods for a family that the node does not have', () => {
    expect(planNodeView(settings, facts, 6)).toMatchObject({
      nodeIp: '::1',
      nodePortAddresses: { kind: 'all' },
      localDetector: { kind: 'none' },
    })
  })

  test('works without a Node', () => {
    expect(planNodeView(settings, { ...facts, node: undefined }, 4)).toMatchObject({
      nodeIp: '127.0.0.1',
      zone: undefined,
    })
  })

  test('follows the addresses of the machine', () => {
    const wide = { ...settings, nodePortAddresses: ['192.168.0.0/16'] }
    const more = { ...facts, machineAddresses: [...facts.machineAddresses, '192.168.0.2'] }
    expect(planNodeView(wide, more, 4).nodePortAddresses).toEqual({
      kind: 'only',
      addresses: ['192.168.0.1', '192.168.0.2'],
    })
  })

  test('has a positive mark for the highest bit', () => {
    expect(planNodeView({ ...settings, masqueradeBit: 31 }, facts, 4).masqueradeMark).toBe(0x80000000)
  })

  test('calls an empty zone none', () => {
    expect(planNodeView(settings, { ...facts, node: { ...node, zone: '' } }, 4).zone).toBeUndefined()
  })
})

describe('nodeViewWarnings()', () => {
  const warn = (wish: Partial<NodeSettings>, other: Partial<NodeFacts> = {}) =>
    nodeViewWarnings({ ...settings, ...wish }, { ...facts, ...other })

  test('has nothing to say about good settings', () => {
    expect(warn({})).toEqual([])
  })

  test('tells of an unknown node address', () => {
    expect(warn({}, { node: undefined })).toEqual([
      "Cannot determine this node's IP, assuming loopback: set --bind-address if that is wrong",
    ])
  })

  test('tells of node ports that are open nowhere', () => {
    expect(warn({ nodePortAddresses: ['172.16.0.0/12'] })).toEqual([
      'nodePortAddresses ["172.16.0.0/12"] matches no IPv4 address: node ports are closed',
    ])
    const localhost = { nodePortAddresses: ['localhost'] }
    expect(warn(localhost)).toEqual(['nodePortAddresses ["localhost"] matches no IPv4 address: node ports are closed'])
    expect(warn({ ...localhost, localhostNodePorts: true })).toEqual([])
  })

  test('tells when no traffic counts as local', () => {
    expect(warn({ detectLocal: { ...settings.detectLocal, clusterCIDRs: ['fd01::/48'] } })).toEqual([
      'detectLocalMode is ClusterCIDR, but ["fd01::/48"] has nothing for IPv4: no traffic counts as local',
    ])
    expect(
      warn({ detectLocal: { ...settings.detectLocal, mode: 'NodeCIDR' } }, { node: { ...node, podCIDRs: [] } }),
    ).toEqual(['detectLocalMode is NodeCIDR, but [] has nothing for IPv4: no traffic counts as local'])
  })
})
