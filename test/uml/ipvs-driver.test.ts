// The IPVS driver on a real kernel. What we write is read by ipvsadm, and the other way round.

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { IpvsDriver } from '../../src/ipvs/driver.ts'
import { KernelError } from '../../src/lib/errors.ts'
import { formatServers } from '../../src/ipvs/format.ts'
import { SCHEDULER_FLAGS } from '../../src/ipvs/types.ts'
import type { IpvsOp, VirtualServer } from '../../src/ipvs/types.ts'
import { openNetns, restIn } from '../support/netns/netns.ts'
import type { Netns } from '../support/netns/netns.ts'

let netns: Netns
let resting: Disposable
let driver: IpvsDriver
beforeEach(() => {
  netns = openNetns('node')
  resting = restIn(netns)
  netns.ip(['link set lo up'])
  driver = new IpvsDriver()
})
afterEach(() => {
  driver.close()
  resting[Symbol.dispose]()
  netns.close()
})

const ipvsadm = (...args: string[]) => netns.run('ipvsadm', args)
const saved = () => sorted(ipvsadm('-Sn'))
const sorted = (text: string) => text.split('\n').sort().join('\n').trim()

const web: VirtualServer = {
  family: 4,
  protocol: 'TCP',
  address: '10.0.0.1',
  port: 80,
  scheduler: 'rr',
  schedulerFlags: 0,
  persistenceSeconds: undefined,
}
const dns: VirtualServer = {
  ...web,
  family: 6,
  protocol: 'UDP',
  address: 'fd00::1',
  port: 53,
  persistenceSeconds: 10800,
}
const sctp: VirtualServer = {
  ...web,
  protocol: 'SCTP',
  port: 5000,
  scheduler: 'mh',
  schedulerFlags: SCHEDULER_FLAGS.port,
}

const servers = [
  { server: web, destinations: [destination('10.1.0.1', 8080), destination('10.1.0.2', 8081, 5)] },
  { server: dns, destinations: [destination('fd01::1', 5353, 0)] },
  { server: sctp, destinations: [] },
]

function destination(address: string, port: number, weight = 1) {
  return { address, port, weight }
}

const build: IpvsOp[] = servers.flatMap(({ server, destinations }): IpvsOp[] => [
  { op: 'addServer', server },
  ...destinations.map((destination): IpvsOp => ({ op: 'addDestination', server, destination })),
])

describe('IpvsDriver', () => {
  test('apply() writes servers and destinations that ipvsadm saves as we format them', () => {
    driver.apply(build)
    expect(saved()).toBe(sorted(formatServers(servers)))
  })

  test('read() gives back what was written, by family', () => {
    driver.apply(build)
    const state = [...driver.read(4), ...driver.read(6)]
    expect(sorted(formatServers(state))).toBe(saved())
    expect(driver.read(6).map(({ server }) => server)).toEqual([dns])
    expect(driver.read(4).flatMap(({ destinations }) => destinations.map(({ isNat }) => isNat))).toEqual([true, true])
  })

  test('read() passes over servers by firewall mark and tells destinations that do not use NAT', () => {
    ipvsadm('-A', '-f', '7', '-s', 'rr')
    ipvsadm('-A', '-t', '10.0.0.1:80', '-s', 'wlc')
    ipvsadm('-a', '-t', '10.0.0.1:80', '-r', '10.1.0.1:80', '-g')
    const [state, ...rest] = driver.read(4)
    expect(rest).toEqual([])
    expect(state?.server).toEqual({ ...web, scheduler: 'wlc' })
    expect(state?.destinations[0]).toMatchObject({ address: '10.1.0.1', isNat: false, activeConnections: 0 })
  })

  test('apply() changes and deletes', () => {
    driver.apply(build)
    const changed = { ...web, scheduler: 'sh', persistenceSeconds: 300 }
    const moved = destination('10.1.0.2', 8081, 0)
    driver.apply([
      { op: 'setServer', server: changed },
      { op: 'setDestination', server: web, destination: moved },
      { op: 'deleteDestination', server: web, destination: destination('10.1.0.1', 8080) },
      { op: 'deleteServer', server: dns },
      { op: 'deleteServer', server: sctp },
    ])
    expect(saved()).toBe(sorted(formatServers([{ server: changed, destinations: [moved] }])))
  })

  test('apply() names the operation that the kernel refuses', () => {
    const refused = () => driver.apply([{ op: 'addServer', server: { ...web, scheduler: 'nope' } }])
    expect(refused).toThrow(KernelError)
    expect(refused).toThrow('Cannot add virtual server -t 10.0.0.1:80 with scheduler nope: ENOENT')
    expect(() => driver.apply([...build, ...build])).toThrow('EEXIST')
  })

  test('apply() takes more operations than go into one message', () => {
    const many = Array.from({ length: 2500 }, (_, i) => destination(`10.1.${i >> 8}.${i & 255}`, 80))
    driver.apply([
      { op: 'addServer', server: web },
      ...many.map((destination): IpvsOp => ({ op: 'addDestination', server: web, destination })),
    ])
    expect(driver.readDestinations(web)).toHaveLength(2500)
    expect(ipvsadm('-Sn').trim().split('\n')).toHaveLength(2501)
  })

  test('setTimeouts() sets those that are given', () => {
    const before = driver.readTimeouts()
    driver.setTimeouts({ tcpSeconds: 1000, udpSeconds: 0 })
    expect(driver.readTimeouts()).toEqual({ ...before, tcpSeconds: 1000 })
    expect(ipvsadm('-Ln', '--timeout')).toContain('1000 120 300')
  })

  test('info() tells the version and the size of the table', () => {
    expect(driver.info()).toEqual({ version: 0x010201, tableSize: 4096 })
  })
})
