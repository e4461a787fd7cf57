import { describe, expect, test } from 'vitest'
import { service } from '../../test/support/kube-objects.ts'
import type { Service } from '../kube/types.ts'
import { formatCidr } from '../lib/ip.ts'
import type { Family } from '../lib/ip.ts'
import { parseService, sameService } from './service-ports.ts'
import { WITHOUT_LOCAL_ANNOTATION } from './without-local.ts'

function read(object: Service, options: { family?: Family; allowExternalIPs?: boolean } = {}) {
  const { family = 4, allowExternalIPs = true } = options
  const problems: string[] = []
  const info = parseService(object, `${object.namespace}/${object.name}`, { family, allowExternalIPs, problems })
  return { info, problems }
}

describe('parseService()', () => {
  test('names each port after the service', () => {
    const { info } = read(
      service({ ports: [{ name: 'http' }, { name: 'dns', protocol: 'UDP', port: 53, nodePort: 30053 }] }),
    )
    expect(info?.ports).toMatchObject([
      { name: 'default/web:http', portName: 'http', protocol: 'TCP', port: 80, nodePort: 0 },
      { name: 'default/web:dns', portName: 'dns', protocol: 'UDP', port: 53, nodePort: 30053 },
    ])
    expect(read(service()).info?.ports[0]?.name).toBe('default/web')
  })

  test.each([
    ['headless', { clusterIPs: ['None'] }],
    ['without cluster IP', { clusterIPs: [] }],
    ['with an empty cluster IP', { clusterIPs: [''] }],
    ['ExternalName', { type: 'ExternalName' }],
    ["another proxy's", { labels: { 'service.kubernetes.io/service-proxy-name': '' } }],
  ])('skips a service that is %s, silently', (_, wish) => {
    expect(read(service(wish))).toEqual({ info: undefined, problems: [] })
  })

  test('does not care for the label that marks headless slices', () => {
    expect(read(service({ labels: { 'service.kubernetes.io/headless': '' } })).info).toBeDefined()
  })

  test('takes the cluster IP of the family, or has nothing to do', () => {
    const dual = service({ clusterIPs: ['fd00::1', '10.0.0.1'] })
    expect(read(dual).info?.clusterIP).toBe('10.0.0.1')
    expect(read(dual, { family: 6 }).info?.clusterIP).toBe('fd00::1')
    expect(read(service(), { family: 6 })).toEqual({ info: undefined, problems: [] })
  })

  test('takes external and load-balancer IPs of the family, canonical, sorted, once', () => {
    const object = service({
      externalIPs: ['203.0.113.10', 'fd01::1', '203.0.113.9', '203.0.113.010', ' '],
      ingress: [
        { ip: '198.51.100.2', ipMode: 'VIP' },
        { ip: '198.51.100.1', ipMode: 'Proxy' },
        { ip: '', ipMode: 'VIP' },
        { ip: 'FD02::1', ipMode: 'VIP' },
      ],
    })
    expect(read(object).info).toMatchObject({
      externalIPs: ['203.0.113.9', '203.0.113.10'],
      loadBalancerIPs: ['198.51.100.2'],
    })
    expect(read(object).problems).toEqual([])
    const dual = { ...object, clusterIPs: ['10.0.0.1', 'fd00::1'] }
    expect(read(dual, { family: 6 }).info).toMatchObject({ externalIPs: ['fd01::1'], loadBalancerIPs: ['fd02::1'] })
  })

  test('has no external IPs when the feature gate is off', () => {
    expect(read(service({ externalIPs: ['203.0.113.9'] }), { allowExternalIPs: false }).info?.externalIPs).toEqual([])
  })

  test('says which addresses and ranges it cannot read', () => {
    const { problems } = read(service({ externalIPs: ['x'], loadBalancerSourceRanges: ['10.0.0.0', '10.0.0.0/8'] }))
    expect(problems).toEqual([
      'spec.externalIPs: "x" is not an IP address and is ignored',
      'spec.loadBalancerSourceRanges: "10.0.0.0" is not a CIDR and is ignored',
    ])
  })

  test('filters source ranges by family; a range of everything is no range', () => {
    const ranges = (texts: string[], family: Family = 4) =>
      read(service({ clusterIPs: ['10.0.0.1', 'fd00::1'], loadBalancerSourceRanges: texts }), {
        family,
      }).info?.sourceRanges.map(formatCidr)
    expect(ranges([' 10.9.0.1/16 ', 'fd00::/8', '10.8.0.0/16', '10.9.0.0/16'])).toEqual(['10.8.0.0/16', '10.9.0.0/16'])
    expect(ranges([' 10.9.0.1/16 ', 'fd00::/8'], 6)).toEqual(['fd00::/8'])
    expect(ranges(['10.9.0.0/16', '0.0.0.0/0'])).toEqual([])
    expect(ranges(['10.9.0.0/16', '::/0'])).toEqual(['10.9.0.0/16'])
  })

  test('counts externalTrafficPolicy only for services that can be reached from outside', () => {
    const local = (wish: Partial<Service>) =>
      read(service({ externalTrafficPolicy: 'Local', ...wish })).info?.externalPolicyLocal
    expect(local({ type: 'NodePort' })).toBe(true)
    expect(local({ type: 'LoadBalancer', healthCheckNodePort: 1 })).toBe(true)
    expect(local({ externalIPs: ['203.0.113.9'] })).toBe(true)
    expect(local({})).toBe(false)
    expect(read(service({ type: 'NodePort' })).info?.externalPolicyLocal).toBe(false)
  })

  test('reads internalTrafficPolicy', () => {
    expect(read(service({ internalTrafficPolicy: 'Local' })).info?.internalPolicyLocal).toBe(true)
    expect(read(service()).info?.internalPolicyLocal).toBe(false)
  })

  test('has a health check port only for load balancers with policy Local', () => {
    const wish = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30100 }
    expect(read(service(wish)).info?.healthCheckNodePort).toBe(30100)
    expect(read(service({ ...wish, type: 'NodePort' })).info?.healthCheckNodePort).toBe(0)
    expect(read(service({ ...wish, externalTrafficPolicy: 'Cluster' })).info?.healthCheckNodePort).toBe(0)
    expect(read(service({ ...wish, healthCheckNodePort: 0 })).problems).toEqual([
      'spec.healthCheckNodePort is missing although externalTrafficPolicy is Local',
    ])
  })

  test('says so where an annotation can have no effect', () => {
    const wish = { annotations: { [WITHOUT_LOCAL_ANNOTATION]: 'use-others' }, externalTrafficPolicy: 'Cluster' }
    expect(read(service({ ...wish, type: 'NodePort' })).problems).toEqual([
      `annotation ${WITHOUT_LOCAL_ANNOTATION} has no effect: spec.externalTrafficPolicy is "Cluster", it must be "Local"`,
    ])
    expect(read(service({ ...wish, type: 'NodePort', externalTrafficPolicy: 'Local' })).problems).toEqual([])
  })

  test('has affinity of three hours unless told otherwise', () => {
    expect(read(service()).info?.affinitySeconds).toBeUndefined()
    expect(read(service({ affinityTimeoutSeconds: 5 })).info?.affinitySeconds).toBeUndefined()
    expect(read(service({ sessionAffinity: 'ClientIP' })).info?.affinitySeconds).toBe(10800)
    expect(read(service({ sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 5 })).info?.affinitySeconds).toBe(5)
    const impossible = read(service({ sessionAffinity: 'ClientIP', affinityTimeoutSeconds: -1 }))
    expect(impossible.info?.affinitySeconds).toBe(10800)
    expect(impossible.problems).toEqual([
      'sessionAffinityConfig.clientIP.timeoutSeconds: -1 is not from 1 to 86400; 10800 is used',
    ])
  })

  test('ignores ports that cannot be, and says so', () => {
    const { info, problems } = read(
      service({
        ports: [{ name: 'a', port: 0 }, { name: 'b', port: 70000 }, { name: 'c' }, { name: 'c', protocol: 'UDP' }],
      }),
    )
    expect(info?.ports.map(({ name }) => name)).toEqual(['default/web:c'])
    expect(problems).toEqual(['port "a" has the invalid number 0 and is ignored (and 2 more)'])
    const twice = read(service({ ports: [{ name: 'c' }, { name: 'c', protocol: 'UDP' }] }))
    expect(twice.problems).toEqual(['port name "c" is there twice; the second is ignored'])
  })

  test.each(['', 'a', '8', 'http', 'p-1', '8080-tcp', 'a'.repeat(63)])(
    'takes the port name %j, as the API does',
    (name) => {
      const { info, problems } = read(service({ ports: [{ name }] }))
      expect(info?.ports.map(({ portName }) => portName)).toEqual([name])
      expect(problems).toEqual([])
    },
  )

  test.each(['a\nCOMMIT', 'a b', 'A', 'a_b', '-a', 'a-', 'a"', 'é', 'a.b', '\0', 'a'.repeat(64)])(
    'ignores a port with the name %j, which the API never lets through',
    (name) => {
      const { info, problems } = read(service({ ports: [{ name }, { name: 'ok' }] }))
      expect(info?.ports.map(({ portName }) => portName)).toEqual(['ok'])
      expect(problems).toHaveLength(1)
    },
  )

  test('tells of a thousand bad values of a field in one line', () => {
    const bad = Array.from({ length: 1000 }, (_, i) => `bad ${i}`)
    const { problems } = read(
      service({
        externalIPs: bad,
        loadBalancerSourceRanges: bad,
        ingress: bad.map((ip) => ({ ip, ipMode: 'VIP' })),
        ports: bad.map((name) => ({ name })),
      }),
    )
    expect(problems).toHaveLength(4)
    for (const problem of problems) expect(problem).toContain('(and 999 more)')
  })

  test('refuses names that would be another service port', () => {
    expect(read(service({ name: 'web:http' })).problems).toEqual([
      'the name is not a valid object name; the service is ignored',
    ])
    expect(read(service({ namespace: 'a/b' })).info).toBeUndefined()
    expect(read(service({ name: 'a.b' })).info).toBeUndefined()
    expect(read(service({ namespace: '10.2.0.1' })).info).toBeUndefined()
    expect(read(service({ name: 'x'.repeat(64) })).info).toBeUndefined()
    // Not in every cluster, but in some.
    expect(read(service({ name: '1-web' })).info).toBeDefined()
  })
})

test('sameService() sees every difference that matters', () => {
  const base = {
    type: 'LoadBalancer',
    externalIPs: ['203.0.113.9'],
    ingress: [{ ip: '198.51.100.2', ipMode: 'VIP' }],
    loadBalancerSourceRanges: ['10.0.0.0/8'],
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: 5,
    sessionAffinity: 'ClientIP',
  }
  const same = (wish: Parameters<typeof service>[0]) =>
    sameService(read(service(base)).info, read(service({ ...base, ...wish })).info)
  expect(same({})).toBe(true)
  expect(same({ annotations: { a: 'b' } })).toBe(true)
  for (const wish of [
    { clusterIPs: ['10.0.0.2'] },
    { clusterIPs: ['None'] },
    { externalIPs: [] },
    { ingress: [] },
    { loadBalancerSourceRanges: ['10.0.0.0/9'] },
    { externalTrafficPolicy: 'Cluster' },
    { internalTrafficPolicy: 'Local' },
    { healthCheckNodePort: 6 },
    { affinityTimeoutSeconds: 6 },
    { createdMs: 6 },
    { ports: [{ port: 81 }] },
    { ports: [{ nodePort: 30000 }] },
    { ports: [{ protocol: 'UDP' as const }] },
    { ports: [{ name: 'x' }] },
    { ports: [] },
  ]) {
    expect(same(wish), JSON.stringify(wish)).toBe(false)
  }
})
