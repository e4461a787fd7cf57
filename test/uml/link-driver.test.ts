// The dummy link and its addresses on a real kernel, as `ip addr` sees them.

import { afterEach, beforeEach, expect, test } from 'vitest'
import { LinkDriver } from '../../src/links/driver.ts'
import { openNetns, restIn } from '../support/netns/netns.ts'
import type { Netns } from '../support/netns/netns.ts'

let netns: Netns
let resting: Disposable
let driver: LinkDriver
beforeEach(() => {
  netns = openNetns('node')
  resting = restIn(netns)
  driver = new LinkDriver('kube-ipvs0')
})
afterEach(() => {
  driver.close()
  resting[Symbol.dispose]()
  netns.close()
})

const addresses = () =>
  netns
    .run('ip', ['-o', 'addr', 'show', 'dev', 'kube-ipvs0'])
    .split('\n')
    .flatMap((line) => /inet6? (\S+)/.exec(line)?.[1] ?? [])

test('ensure() creates a dummy link that is down, once', () => {
  driver.ensure()
  driver.ensure()
  expect(netns.run('ip', ['-d', 'link', 'show', 'kube-ipvs0'])).toMatch(/<BROADCAST,NOARP> .* state DOWN[^]*dummy/)
})

test('apply() adds addresses of both families and deletes them, and does not mind what is done already', () => {
  driver.apply([
    { op: 'addAddress', address: '10.0.0.1' },
    { op: 'addAddress', address: '10.0.0.1' },
    { op: 'addAddress', address: 'fd00::1' },
  ])
  expect(addresses()).toEqual(['10.0.0.1/32', 'fd00::1/128'])
  expect(netns.run('ip', ['route', 'get', '10.0.0.1'])).toContain('local 10.0.0.1')
  expect(netns.run('ip', ['route', 'get', 'fd00::1'])).toContain('local fd00::1')
  driver.apply([
    { op: 'deleteAddress', address: '10.0.0.1' },
    { op: 'deleteAddress', address: '10.0.0.1' },
  ])
  expect(addresses()).toEqual(['fd00::1/128'])
})

test('read() tells the addresses of the link from those of others', () => {
  netns.ip(['link set lo up', 'link add eth0 type dummy', 'addr add 192.0.2.1/24 dev eth0'])
  driver.apply([{ op: 'addAddress', address: '10.0.0.1' }])
  expect(driver.read(4)).toEqual({ own: ['10.0.0.1'], others: ['127.0.0.1', '192.0.2.1'] })
  expect(driver.read(6)).toEqual({ own: [], others: ['::1'] })
})

test('a look at the addresses of others forgets nothing that the link is to have', () => {
  netns.ip(['link set lo up'])
  driver.apply([{ op: 'addAddress', address: '10.0.0.1' }])
  netns.ip(['addr del 10.0.0.1/32 dev kube-ipvs0'])
  expect(driver.readOthers(4)).toEqual(['127.0.0.1'])
  expect(driver.expects('10.0.0.1')).toBe(true)
  driver.read(4)
  expect(driver.expects('10.0.0.1')).toBe(false)
})

test('delete() removes the link, and is harmless without one', () => {
  driver.ensure()
  driver.delete()
  driver.delete()
  expect(netns.run('ip', ['-o', 'link'])).not.toContain('kube-ipvs0')
})
