import { describe, expect, it } from 'vitest'
import type { Node } from '../kube/types.ts'
import { planConfigProblems, type OtherSettings } from './config-problems.ts'
import type { NodeSettings } from './node-view.ts'

const node: Node = {
  name: 'n',
  zone: undefined,
  addresses: [{ type: 'InternalIP', address: '192.168.0.1' }],
  podCIDRs: ['10.1.0.0/24'],
  deleting: false,
  taints: [],
}
const settings: NodeSettings = {
  nodeName: 'n',
  bindAddress: '0.0.0.0',
  detectLocal: { mode: 'ClusterCIDR', clusterCIDRs: ['10.1.0.0/16'], bridgeInterface: '', interfaceNamePrefix: '' },
  nodePortAddresses: ['primary'],
  masqueradeAll: false,
  masqueradeBit: 14,
}
const servers = { healthzBindAddress: '0.0.0.0', metricsBindAddress: '127.0.0.1' }

function problems(
  wish: Partial<NodeSettings>,
  other: Partial<OtherSettings> = {},
  own: Partial<Node> = {},
): { warnings: readonly string[]; errors: readonly string[] } {
  const facts = { node: { ...node, ...own }, machineAddresses: ['192.168.0.1'], serviceCidrs: [] }
  return planConfigProblems({ ...settings, ...wish }, facts, { excludeCIDRs: [], servers, families: [4, 6], ...other })
}

const locals = (mode: 'ClusterCIDR' | 'NodeCIDR', ...clusterCIDRs: string[]) => ({
  detectLocal: { ...settings.detectLocal, mode, clusterCIDRs },
})

describe('planConfigProblems()', () => {
  it('has nothing to say about good settings', () => {
    expect(problems({})).toEqual({ warnings: [], errors: [] })
    expect(problems({}, { families: [4] })).toEqual({ warnings: [], errors: [] })
  })

  it('tells of node ports that are open everywhere', () => {
    expect(problems({ nodePortAddresses: [] }).warnings).toEqual([
      'nodePortAddresses is unset: node ports are open on all local addresses; consider "primary"',
    ])
    expect(problems({}, {}, { addresses: [] }).warnings).toEqual([
      'nodePortAddresses ["primary"] names no address: node ports are open on all local addresses; consider "primary"',
    ])
  })

  it.each([
    ['clusterCIDR', locals('ClusterCIDR', '10.1.0.0/16', 'fd01::/48'), {}, {}],
    ['podCIDRs', {}, {}, { podCIDRs: ['10.1.0.0/24', 'fd01::/64'] }],
    ['ipvs.excludeCIDRs', {}, { excludeCIDRs: ['10.2.0.0/16', 'fd02::/48'] }, {}],
  ])('tells of node ports of the second family where %s is dual-stack', (_, wish, other, own) => {
    expect(problems(wish, other, own)).toEqual({
      warnings: [
        'The cluster seems to be dual-stack, but nodePortAddresses ["primary"] names IPv4 addresses only: node ports are open on all local IPv6 addresses',
      ],
      errors: [],
    })
  })

  it('tells of node ports of the first family', () => {
    expect(problems({ nodePortAddresses: ['fd00::/8'] }).warnings).toEqual([
      'The primary IP family of this node is IPv4, but nodePortAddresses ["fd00::/8"] names IPv6 addresses only: node ports are open on all local IPv4 addresses',
    ])
  })

  it('refuses ranges of pods that are all of the wrong family, where they are what counts', () => {
    const cluster = locals('ClusterCIDR', 'fd01::/48')
    expect(problems(cluster)).toEqual({
      warnings: ['this node is IPv4 first, but clusterCIDR is IPv6 only'],
      errors: [],
    })
    expect(problems(cluster, { families: [4] }).errors).toEqual([
      'this node is IPv4 only, but clusterCIDR is IPv6 only',
    ])
    const pods = { podCIDRs: ['fd01::/64'] }
    expect(problems({}, {}, pods).warnings).toEqual([
      'this node is IPv4 first, but spec.podCIDRs of the Node is IPv6 only',
    ])
    expect(problems(locals('NodeCIDR'), {}, pods).errors).toEqual([
      'this node is IPv4 first, but spec.podCIDRs of the Node is IPv6 only',
    ])
  })

  it('tells of servers and ranges of a family that the machine does not have', () => {
    const other = {
      families: [4] as const,
      excludeCIDRs: ['fd02::/48'],
      servers: { healthzBindAddress: '::', metricsBindAddress: '::1' },
    }
    expect(problems({}, other).warnings).toEqual([
      'this node is IPv4 only, but ipvs.excludeCIDRs is IPv6 only',
      'this node is IPv4 only, but metricsBindAddress is IPv6',
    ])
    expect(problems({}, { ...other, families: [4, 6] }).warnings).toEqual([])
  })

  it('refuses a node whose first family the machine does not have', () => {
    expect(problems({ bindAddress: 'fd00::1' }, { families: [4] }).errors).toEqual([
      'the primary IP family of this node is IPv6, which this machine does not have',
    ])
  })
})
