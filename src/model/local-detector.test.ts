import { describe, expect, test } from 'vitest'
import { describeLocalDetector, planLocalDetector } from './local-detector.ts'
import type { DetectLocalSettings } from './local-detector.ts'

const settings: DetectLocalSettings = {
  mode: 'ClusterCIDR',
  clusterCIDRs: ['10.1.0.0/16', 'fd01::/48', '10.2.0.0/16'],
  bridgeInterface: 'cni0',
  interfaceNamePrefix: 'veth',
}
const podCIDRs = ['fd01:0:0:a::/64', '10.1.7.0/24']

function detect(wish: Partial<DetectLocalSettings>, family: 4 | 6 = 4, cidrs = podCIDRs): string {
  return describeLocalDetector(planLocalDetector({ ...settings, ...wish }, cidrs, family))
}

describe('planLocalDetector()', () => {
  test('ClusterCIDR goes by the first cluster range of the family', () => {
    expect(detect({})).toBe('source in 10.1.0.0/16')
    expect(detect({}, 6)).toBe('source in fd01::/48')
    expect(detect({ clusterCIDRs: [' 10.1.0.0/16'] }, 6)).toBe('none')
    expect(detect({ clusterCIDRs: [] })).toBe('none')
  })

  test("NodeCIDR goes by the Node's range of the family", () => {
    expect(detect({ mode: 'NodeCIDR' })).toBe('source in 10.1.7.0/24')
    expect(detect({ mode: 'NodeCIDR' }, 6)).toBe('source in fd01:0:0:a::/64')
    expect(detect({ mode: 'NodeCIDR' }, 4, [])).toBe('none')
  })

  test('BridgeInterface and InterfaceNamePrefix go by the interface, for both families', () => {
    expect(detect({ mode: 'BridgeInterface' })).toBe('from interface cni0')
    expect(detect({ mode: 'BridgeInterface' }, 6)).toBe('from interface cni0')
    expect(detect({ mode: 'InterfaceNamePrefix' })).toBe('from interface veth*')
    expect(detect({ mode: 'BridgeInterface', bridgeInterface: '' })).toBe('none')
    expect(detect({ mode: 'InterfaceNamePrefix', interfaceNamePrefix: '' })).toBe('none')
  })
})
