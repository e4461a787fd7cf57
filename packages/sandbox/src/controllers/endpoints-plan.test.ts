import { describe, expect, it } from 'vitest'
import { aPod, aSandboxService } from '../../../../test/support/sandbox-objects.ts'
import { planEndpoints } from './endpoints-plan.ts'

describe('planEndpoints()', () => {
  it('lists ready and unready pods apart, by address', () => {
    const pods = [
      aPod({ name: 'b', ips: ['10.1.0.2'] }),
      aPod({ name: 'a', ips: ['10.1.0.1'] }),
      aPod({ name: 'c', ips: ['10.1.0.3'], ready: false }),
    ]
    const [subset, ...rest] = planEndpoints(aSandboxService(), pods).subsets
    expect(rest).toEqual([])
    expect(subset).toMatchObject({
      addresses: [{ ip: '10.1.0.1', nodeName: 'node-1', targetRef: { kind: 'Pod', name: 'a' } }, { ip: '10.1.0.2' }],
      notReadyAddresses: [{ ip: '10.1.0.3' }],
      ports: [{ port: 8080, protocol: 'TCP' }],
    })
  })

  it('leaves out pods that end, have ended, have no address or are not selected', () => {
    const pods = [
      aPod({ name: 'a', deleting: true }),
      aPod({ name: 'b', phase: 'Failed' }),
      aPod({ name: 'c', ips: [] }),
      aPod({ name: 'd', labels: { app: 'other' } }),
    ]
    expect(planEndpoints(aSandboxService(), pods).subsets).toEqual([])
  })

  it('publishes unready addresses as ready on request', () => {
    const service = aSandboxService({ publishNotReadyAddresses: true })
    const pods = [aPod({ name: 'a', ready: false }), aPod({ name: 'b', ips: ['10.1.0.2'], deleting: true })]
    expect(planEndpoints(service, pods).subsets[0]?.addresses).toHaveLength(2)
  })

  it('makes a subset for each meaning that a named port has', () => {
    const service = aSandboxService({ ports: [{ port: 80, targetPort: 'http' }] })
    const other = { containers: [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 9090 }] }] }
    const unnamed = { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 8080 }] }] }
    const pods = [
      aPod({ name: 'a' }),
      aPod({ name: 'b', ips: ['10.1.0.2'], spec: other }),
      aPod({ name: 'c', ips: ['10.1.0.3'], spec: unnamed }),
    ]
    expect(planEndpoints(service, pods).subsets).toMatchObject([
      { addresses: [{ ip: '10.1.0.1' }], ports: [{ port: 8080 }] },
      { addresses: [{ ip: '10.1.0.2' }], ports: [{ port: 9090 }] },
    ])
  })

  it('has the first family of the service only', () => {
    const pods = [aPod({ ips: ['10.1.0.1', 'fd00::1'] })]
    const families = (ipFamilies: string[]) =>
      planEndpoints(aSandboxService({ ipFamilies }), pods).subsets[0]?.addresses?.map(({ ip }) => ip)
    expect(families(['IPv4', 'IPv6'])).toEqual(['10.1.0.1'])
    expect(families(['IPv6', 'IPv4'])).toEqual(['fd00::1'])
  })

  it('says whether the service is headless', () => {
    const headless = aSandboxService({ clusterIP: 'None', clusterIPs: ['None'] }, { labels: { x: 'y' } })
    expect(planEndpoints(headless, []).labels).toMatchObject({ 'service.kubernetes.io/headless': '', x: 'y' })
    expect(planEndpoints(aSandboxService(), []).labels).not.toHaveProperty('service.kubernetes.io/headless')
  })
})
