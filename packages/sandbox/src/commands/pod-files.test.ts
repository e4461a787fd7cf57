import { describe, expect, it } from 'vitest'
import { planPodFiles } from './pod-files.ts'
import type { Pod, PodSpec } from '../apiserver/objects/pod.ts'

function files(spec: Partial<PodSpec> = {}) {
  const pod = { metadata: { name: 'a', namespace: 'shop' }, spec: { containers: [], ...spec }, status: {} }
  return planPodFiles(pod as unknown as Pod, ['10.1.0.2'], ['10.96.0.10'])
}

describe('planPodFiles()', () => {
  it('asks the cluster first, with its search domains', () => {
    expect(files().get('/etc/resolv.conf')).toBe(
      'nameserver 10.96.0.10\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n',
    )
    expect(files({ hostname: 'h', subdomain: 'web' }).get('/etc/hosts')).toMatch(
      /^10\.1\.0\.2\th\.web\.shop\.svc\.cluster\.local h$/m,
    )
  })

  it("leaves the machine's own to pods on the host's network, and where it is asked for", () => {
    expect(files({ hostNetwork: true }).size).toBe(0)
    expect(files({ dnsPolicy: 'Default' }).size).toBe(0)
    expect(files({ hostNetwork: true, dnsPolicy: 'ClusterFirstWithHostNet' }).size).toBe(3)
  })

  it('takes what the pod says', () => {
    const dnsConfig = {
      nameservers: ['192.0.2.1'],
      searches: ['example.test'],
      options: [{ name: 'ndots', value: '1' }, { name: 'edns0' }],
    }
    expect(files({ dnsPolicy: 'None', dnsConfig }).get('/etc/resolv.conf')).toBe(
      'nameserver 192.0.2.1\nsearch example.test\noptions ndots:1 edns0\n',
    )
    expect(files({ dnsConfig }).get('/etc/resolv.conf')).toMatch(/^options ndots:1 edns0$/m)
  })
})
