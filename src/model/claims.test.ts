import { describe, expect, test } from 'vitest'
import * as fc from 'fast-check'
import { service } from '../../test/support/kube-objects.ts'
import { Claims, claimedFrontends, describeFrontend } from './claims.ts'
import { parseService } from './service-ports.ts'
import type { ServiceInfo, ServicePortInfo } from './service-ports.ts'

function info(name: string, wish: Parameters<typeof service>[0] = {}): ServiceInfo {
  const object = service({ name, ...wish })
  return parseService(object, `default/${name}`, { family: 4, allowExternalIPs: true, problems: [] }) as ServiceInfo
}

const at = (address: string | undefined, port = 80) => ({ address, protocol: 'TCP', port }) as const
const ownerOf = (claims: Claims, address: string | undefined, port?: number) => claims.owner(at(address, port))?.name

const shared = { externalIPs: ['203.0.113.9'] }
const older = info('older', { ...shared, clusterIPs: ['10.0.0.9'], createdMs: 1 })
const younger = info('younger', { ...shared, clusterIPs: ['10.0.0.2'], createdMs: 2 })

describe('Claims', () => {
  test('gives a frontend to the older service, whichever came first', () => {
    for (const order of [
      [older, younger],
      [younger, older],
    ]) {
      const claims = new Claims()
      for (const one of order) claims.replace(undefined, one)
      expect(ownerOf(claims, '203.0.113.9')).toBe('default/older')
      expect(ownerOf(claims, '10.0.0.2')).toBe('default/younger')
    }
  })

  test('gives it to the name that sorts first when both are equally old', () => {
    const claims = new Claims()
    claims.replace(undefined, info('b', { ...shared, clusterIPs: ['10.0.0.3'] }))
    claims.replace(undefined, info('a', { ...shared, clusterIPs: ['10.0.0.4'] }))
    expect(ownerOf(claims, '203.0.113.9')).toBe('default/a')
  })

  test('gives a cluster IP to its service, even to a younger one', () => {
    const thief = info('thief', { externalIPs: ['10.0.0.2'], clusterIPs: ['10.0.0.3'], createdMs: 0 })
    const claims = new Claims()
    claims.replace(undefined, thief)
    claims.replace(undefined, younger)
    expect(ownerOf(claims, '10.0.0.2')).toBe('default/younger')
  })

  test.each([1, 100])('gives the address of a load balancer to its service, even to a younger one, of %i', (n) => {
    const loadBalancerIPs = Array.from({ length: n }, (_, i) => ({ ip: `198.51.100.${i}`, ipMode: 'VIP' }))
    const address = `198.51.100.${n - 1}`
    const thief = info('thief', { externalIPs: [address], clusterIPs: ['10.0.0.3'], createdMs: 0 })
    const balanced = info('balanced', { ingress: loadBalancerIPs, clusterIPs: ['10.0.0.4'], createdMs: 5 })
    const later = info('later', { ingress: loadBalancerIPs, clusterIPs: ['10.0.0.5'], createdMs: 6 })
    const allocated = info('allocated', { clusterIPs: [address], createdMs: 9 })
    const services = [later, thief, balanced, allocated]
    const claims = new Claims()
    for (const one of services) claims.replace(undefined, one)
    for (const owner of ['allocated', 'balanced', 'later', 'thief']) {
      expect(ownerOf(claims, address)).toBe(`default/${owner}`)
      claims.replace(
        services.find(({ name }) => name === owner),
        undefined,
      )
    }
    expect(ownerOf(claims, address)).toBeUndefined()
  })

  test('hands a frontend on when its owner goes, and names the service that gets it', () => {
    const claims = new Claims()
    claims.replace(undefined, older)
    expect([...claims.replace(undefined, younger)]).toEqual([])
    expect([...claims.replace(older, undefined)]).toEqual([younger])
    expect(ownerOf(claims, '203.0.113.9')).toBe('default/younger')
    expect(ownerOf(claims, '10.0.0.9')).toBeUndefined()
    expect([...claims.replace(undefined, older)]).toEqual([younger])
  })

  test('says what a service port owns of what it claims, with rivals and when they have gone', () => {
    const claims = new Claims()
    const [port] = younger.ports as [ServicePortInfo]
    const owned = () => claims.ownedBy(port, claimedFrontends(port)).map(({ address }) => address)
    claims.replace(undefined, younger)
    expect(owned()).toEqual(['10.0.0.2', '203.0.113.9'])
    claims.replace(undefined, older)
    expect(owned()).toEqual(['10.0.0.2'])
    claims.replace(older, undefined)
    expect(owned()).toEqual(['10.0.0.2', '203.0.113.9'])
  })

  test('keeps node ports apart from addresses and protocols apart from each other', () => {
    const claims = new Claims()
    claims.replace(undefined, info('a', { clusterIPs: ['10.0.0.3'], ports: [{ port: 30000, nodePort: 30000 }] }))
    claims.replace(undefined, info('b', { clusterIPs: ['10.0.0.4'], ports: [{ protocol: 'UDP', nodePort: 30000 }] }))
    expect(ownerOf(claims, undefined, 30000)).toBe('default/a')
    expect(claims.owner({ address: undefined, protocol: 'UDP', port: 30000 })?.name).toBe('default/b')
    expect(ownerOf(claims, '10.0.0.4')).toBeUndefined()
  })

  test('settles a quarrel between two ports of one service', () => {
    const claims = new Claims()
    const odd = info('odd', { ports: [{ name: 'b' }, { name: 'a' }] })
    claims.replace(undefined, odd)
    expect(ownerOf(claims, '10.0.0.1')).toBe('default/odd:a')
    claims.replace(odd, undefined)
    expect(ownerOf(claims, '10.0.0.1')).toBeUndefined()
  })

  test('ends the same whatever the order of events', () => {
    const wish = fc.record({
      externalIPs: fc.subarray(['203.0.113.1', '203.0.113.2', '10.0.0.1']),
      clusterIPs: fc.constantFrom(['10.0.0.1'], ['10.0.0.2'], ['203.0.113.1']),
      ports: fc.constantFrom([{ nodePort: 1 }], [{ nodePort: 2 }], [{ name: 'x' }, { name: 'y', nodePort: 1 }]),
      createdMs: fc.integer({ min: 0, max: 2 }),
    })
    const names = ['a', 'b', 'c']
    const events = fc.array(fc.tuple(fc.constantFrom(...names), fc.option(wish, { nil: undefined })), { maxLength: 12 })
    fc.assert(
      fc.property(events, (list) => {
        const claims = new Claims()
        const current = new Map<string, ServiceInfo>()
        for (const [name, next] of list) {
          const before = current.get(name)
          const after = next && info(name, next)
          claims.replace(before, after)
          if (after === undefined) current.delete(name)
          else current.set(name, after)
        }
        const fresh = new Claims()
        for (const name of names.toReversed()) fresh.replace(undefined, current.get(name))
        for (const address of ['203.0.113.1', '203.0.113.2', '10.0.0.1', '10.0.0.2']) {
          expect(ownerOf(claims, address)).toBe(ownerOf(fresh, address))
        }
        for (const port of [1, 2]) expect(ownerOf(claims, undefined, port)).toBe(ownerOf(fresh, undefined, port))
      }),
    )
  })
})

test('claimedFrontends() counts an address with several roles once', () => {
  const everything = info('all', {
    externalIPs: ['10.0.0.1', '203.0.113.9'],
    ingress: [{ ip: '203.0.113.9', ipMode: 'VIP' }],
    ports: [{ nodePort: 30000 }],
  })
  const claimed = everything.ports.flatMap(claimedFrontends)
  expect(claimed.map(describeFrontend)).toEqual(['10.0.0.1:80/TCP', '203.0.113.9:80/TCP', 'node port 30000/TCP'])
})
