// The ipvs mode as a whole on a real kernel: what it puts there, what it leaves alone, and what it does about others.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ConfigError } from '../../src/lib/errors.ts'
import { silentLogger } from '../../src/lib/log.ts'
import type { KubeProxyConfiguration } from '../../src/config/types.ts'
import { cleanupIpvs, ipvsMachine } from '../../src/modes/ipvs/machine.ts'
import { checkScheduler, probeIpvs, SCHEDULERS } from '../../src/modes/ipvs/probe.ts'
import { node as hostNode, pods } from '../support/addresses.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { service, slice } from '../support/kube-objects.ts'
import { openNetns } from '../support/netns/netns.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import { openTestNetwork, type TestNetwork } from '../support/netns/test-network.ts'
import { defaultIpvs, IpvsNode } from './ipvs-node.ts'

let network: TestNetwork
let node: IpvsNode
beforeAll(async () => {
  network = await openTestNetwork()
})
afterAll(() => network[Symbol.asyncDispose]())
afterEach(() => {
  node[Symbol.dispose]()
  network.node.enter(() => cleanupIpvs({ excludeCIDRs: [] }, silentLogger))
  network.node.run('ipvsadm', ['-C'])
})

const web = { address: '10.2.0.1', port: 80 }
const webService = service({ clusterIPs: [web.address] })
const webSlice = slice([pods.localB.ip[4]])
const servers = [`-A -t 10.2.0.1:80 -s rr`, `-a -t 10.2.0.1:80 -r ${pods.localB.ip[4]}:8080 -m -w 1`].sort()

/** The addresses of the link, as `ip addr` prints them. */
const bound = () =>
  [...network.node.run('ip', ['-o', 'addr', 'show', 'dev', 'kube-ipvs0']).matchAll(/inet6? (\S+)/g)]
    .map((match) => match[1]!)
    .sort()
const reach = async () => (await tcpProbe(network.pods.localA, web)).kind
const served = () =>
  eventually(
    'the service is served again',
    async () => {
      const { kind } = await tcpProbe(network.pods.localA, web, aShortWhile())
      return kind === 'answered' ? undefined : kind
    },
    { withinMs: 10_000 },
  )

describe('the ipvs mode', () => {
  test('puts virtual servers, addresses and one table into the kernel, and a restart changes nothing', async () => {
    node = await IpvsNode.open(network.node)
    await node.put(webService, webSlice)
    expect(node.saved()).toEqual(servers)
    expect(bound()).toEqual(['10.2.0.1/32'])
    expect(network.node.run('nft', ['list', 'tables'])).toBe('table ip kube-proxy-ipvs\n')
    const rules = network.node.run('nft', ['-s', 'list', 'ruleset'])
    node.stop()
    expect(await node.start()).toMatchObject({ transactions: 0, operations: 0 })
    expect(node.saved()).toEqual(servers)
    expect(network.node.run('nft', ['-s', 'list', 'ruleset'])).toBe(rules)
  })

  test('writes rules that nft can load again from its own listing, and that are then as planned', async () => {
    node = await IpvsNode.open(network.node)
    const external = { externalIPs: ['203.0.113.7'], type: 'NodePort', externalTrafficPolicy: 'Local' }
    const ports = [{ nodePort: 30080 }]
    await node.put(
      service({ ...external, ports, clusterIPs: [web.address] }),
      slice([pods.localB.ip[4], pods.remoteA.ip[4]]),
    )
    const listed = network.node.run('nft', ['-s', 'list', 'ruleset'])
    network.node.run('nft', ['flush', 'ruleset'])
    network.node.run('nft', ['-f', '-'], listed)
    expect(network.node.run('nft', ['-s', 'list', 'ruleset'])).toBe(listed)
    node.stop()
    expect(await node.start()).toMatchObject({ transactions: 0, operations: 0 })
  })

  test('does not bind addresses that the node has, and serves them', async () => {
    node = await IpvsNode.open(network.node)
    await node.put(service({ clusterIPs: [web.address], externalIPs: [hostNode.secondIp[4]] }), webSlice)
    expect(bound()).toEqual(['10.2.0.1/32'])
    const answer = await tcpProbe(network.external, { address: hostNode.secondIp[4], port: 80 })
    expect(answer).toMatchObject({ kind: 'answered', greeting: { host: 'localB' } })
    // Other ports of such an address stay the node's own.
    expect((await tcpProbe(network.external, { address: hostNode.secondIp[4], port: 8080 })).kind).toBe('answered')
  })

  test('keeps the ports of the node from being reached through the addresses of services', async () => {
    node = await IpvsNode.open(network.node)
    await node.put(webService, webSlice)
    for (const from of [network.pods.localA, network.external, network.node]) {
      expect((await tcpProbe(from, { ...web, port: 8080 })).kind, from.name).toBe('refused')
    }
  })

  test('lets load balancers probe the health check port of a service on its own address', async () => {
    node = await IpvsNode.open(network.node)
    const ingress = [{ ip: '203.0.113.8', ipMode: 'VIP' }]
    const balanced = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ingress, clusterIPs: [web.address] }
    await node.put(service({ ...balanced, healthCheckNodePort: 8080 }), webSlice)
    expect((await tcpProbe(network.external, { address: '203.0.113.8', port: 8080 })).kind).toBe('answered')
    await node.put(service({ ...balanced, healthCheckNodePort: 8081 }))
    expect((await tcpProbe(network.external, { address: '203.0.113.8', port: 8080 })).kind).toBe('refused')
  })

  test('removes virtual servers of others, but for those in the excluded ranges', async () => {
    for (const address of ['172.16.0.1:1', '172.17.0.1:1'])
      network.node.run('ipvsadm', ['-A', '-t', address, '-s', 'wlc'])
    network.node.run('ipvsadm', ['-A', '-f', '99', '-s', 'rr'])
    node = await IpvsNode.open(network.node, { excludeCIDRs: ['172.16.0.0/16'] })
    await node.put(webService, webSlice)
    expect(node.saved()).toEqual(['-A -f 99 -s rr', '-A -t 172.16.0.1:1 -s wlc', ...servers].sort())
    network.node.enter(() => cleanupIpvs({ excludeCIDRs: ['172.16.0.0/16'] }, silentLogger))
    expect(node.saved()).toEqual(['-A -f 99 -s rr', '-A -t 172.16.0.1:1 -s wlc'])
  })

  test('sets the timeouts and the kernel settings', async () => {
    node = await IpvsNode.open(network.node, { tcpTimeoutMs: 800_000, udpTimeoutMs: 1500, strictARP: true })
    expect(network.node.run('ipvsadm', ['-Ln', '--timeout'])).toMatch(/: 800 \d+ 1\n/)
    const setting = (name: string) => network.node.run('sysctl', ['-n', `net.ipv4.${name}`]).trim()
    const wanted = {
      'vs.conntrack': '1',
      'vs.expire_nodest_conn': '1',
      'vs.expire_quiescent_template': '1',
      'vs.conn_reuse_mode': '1',
      ip_forward: '1',
      'conf.all.arp_ignore': '1',
      'conf.all.arp_announce': '2',
    }
    const actual = Object.fromEntries(Object.keys(wanted).map((name) => [name, setting(name)]))
    expect(actual).toEqual(wanted)
  })

  test('cleans up everything, and nothing of others', async () => {
    node = await IpvsNode.open(network.node)
    await node.put(webService, webSlice)
    network.node.enter(() => cleanupIpvs({ excludeCIDRs: [] }, silentLogger))
    expect(network.node.run('ipvsadm', ['-Sn'])).toBe('')
    expect(network.node.run('nft', ['list', 'ruleset'])).toBe('')
    expect(network.node.run('ip', ['-o', 'link'])).not.toContain('kube-ipvs0')
    // Without the link there was no proxy: whatever is there belongs to another program.
    network.node.run('ipvsadm', ['-A', '-t', '172.17.0.1:1', '-s', 'wlc'])
    network.node.enter(() => cleanupIpvs({ excludeCIDRs: [] }, silentLogger))
    expect(network.node.run('ipvsadm', ['-Sn'])).toBe('-A -t 172.17.0.1:1 -s wlc\n')
  })
})

describe('what others do', () => {
  test.each([
    ['clear IPVS', ['ipvsadm', '-C']],
    ['delete a virtual server', ['ipvsadm', '-D', '-t', '10.2.0.1:80']],
    ['delete a destination', ['ipvsadm', '-d', '-t', '10.2.0.1:80', '-r', `${pods.localB.ip[4]}:8080`]],
    ['flush the rules', ['nft', 'flush', 'ruleset']],
    ['delete a rule set', ['nft', 'delete', 'table', 'ip', 'kube-proxy-ipvs']],
    ['take an address from the link', ['ip', 'addr', 'del', '10.2.0.1/32', 'dev', 'kube-ipvs0']],
    ['flush the link', ['ip', 'addr', 'flush', 'dev', 'kube-ipvs0']],
    ['delete the link', ['ip', 'link', 'del', 'kube-ipvs0']],
  ])('%s: it is undone', async (_, [command = '', ...args]) => {
    node = await IpvsNode.open(network.node)
    await node.put(webService, webSlice)
    expect(await reach()).toBe('answered')
    network.node.run(command, args)
    await served()
    expect(node.foreignChanges).toBeGreaterThan(0)
    expect(bound()).toEqual(['10.2.0.1/32'])
    expect(network.node.run('nft', ['list', 'tables'])).toBe('table ip kube-proxy-ipvs\n')
  })

  test('give the node an address: node ports open on it, and close when it goes', async () => {
    node = await IpvsNode.open(network.node, {}, { nodePortAddresses: { kind: 'all' } })
    await node.put(service({ clusterIPs: [web.address], type: 'NodePort', ports: [{ nodePort: 30090 }] }), webSlice)
    const isOpen = () => node.saved().some((line) => line.startsWith('-A -t 10.3.0.77:30090'))
    network.node.ip(['addr add 10.3.0.77/24 dev eth0'])
    await eventually('the node port is open', () => (isOpen() ? undefined : 'closed'))
    network.node.ip(['addr del 10.3.0.77/24 dev eth0'])
    await eventually('the node port is closed', () => (isOpen() ? 'open' : undefined))
  })

  test('our own changes are not mistaken for it, for either family', async () => {
    node = await IpvsNode.open(network.node)
    await node.put(webService, webSlice)
    for (let i = 2; i < 12; i++) await node.put(service({ name: `s${i}`, clusterIPs: [`10.2.0.${i}`] }))
    await staysQuiet('no change is foreign', () => (node.foreignChanges === 0 ? undefined : 'one is'), { forMs: 1000 })
  })
})

describe('a machine', () => {
  test('can be prepared by --init-only for a program with fewer rights', async () => {
    node = await IpvsNode.open(network.node)
    using other = openNetns('other')
    const config = { ipvs: { ...defaultIpvs, tcpTimeoutMs: 700_000 } } as KubeProxyConfiguration
    void other.enter(() => ipvsMachine.init?.(config, silentLogger))
    expect(other.run('sysctl', ['-n', 'net.ipv4.vs.conntrack']).trim()).toBe('1')
    expect(other.run('ipvsadm', ['-Ln', '--timeout'])).toContain(': 700 ')
    expect(other.run('ip', ['-o', 'link'])).not.toContain('kube-ipvs')
  })

  test('with everything passes the probe', async () => {
    node = await IpvsNode.open(network.node)
    expect(network.node.enter(() => probeIpvs([4, 6]))).toBeUndefined()
  })

  test.each(SCHEDULERS)('has scheduler %s', async (scheduler) => {
    node = await IpvsNode.open(network.node)
    expect(network.node.enter(() => checkScheduler(scheduler))).toBeUndefined()
    expect(network.node.run('ipvsadm', ['-Sn'])).toBe('')
  })

  test('names the schedulers that it has when it is asked for another', async () => {
    node = await IpvsNode.open(network.node)
    const check = () => network.node.enter(() => checkScheduler('fastest'))
    expect(check).toThrow(ConfigError)
    expect(check).toThrow(
      'ipvs.scheduler: Invalid value: "fastest": this kernel has no such scheduler; it has rr, wrr, lc, wlc, lblc, lblcr, dh, sh, mh, sed, nq',
    )
  })

  test('without an address of the link is as harmless as one without a link', async () => {
    node = await IpvsNode.open(network.node)
    using empty = openNetns('empty')
    expect(empty.enter(() => cleanupIpvs({ excludeCIDRs: [] }, silentLogger))).toBeUndefined()
  })
})
