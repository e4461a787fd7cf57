// Endpoints that the clients' own connect() chooses: which connections that is true of, and what they see of it.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Conntrack, type FlowTuple } from '../../src/conntrack/driver.ts'
import type { Family } from '../../src/lib/ip.ts'
import { node, type PodName, pods } from '../support/addresses.ts'
import { aService, aSlice, type ApiService, type EndpointWish, type ServiceWish } from '../support/builders.ts'
import { Cgroup, whyNoCgroup } from '../support/cgroup.ts'
import { eventually } from '../support/eventually.ts'
import { type Greeting, serveEcho } from '../support/netns/echo-server.ts'
import { openTcp, openUdp, tcpProbe, udpProbe } from '../support/netns/probe.ts'
import type { Rate } from '../../src/cli/top-view.ts'
import { proxyCommand, startProxy, ProxyProcess } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { type Netns, openNetns } from '../support/netns/netns.ts'

const TCP = 6
const UDP = 17
const why = whyNoCgroup()

if (why !== undefined) test('endpoints chosen at connect()', ({ skip }) => skip(why))
else {
  describe.each(['nftables', 'iptables'] as const)('in %s mode', (mode) => {
    let rig: Rig
    let proxy: ProxyProcess
    let clients: Cgroup

    beforeAll(async () => {
      rig = await openRig()
      clients = new Cgroup(`kube-proxy-ts-test-${process.pid}-${mode}`)
      rig.network.sources.localPod.clients = clients
      rig.network.sources.node.clients = clients
      proxy = await start()
    })
    afterAll(async () => {
      await proxy[Symbol.asyncDispose]()
      await rig[Symbol.asyncDispose]()
      clients[Symbol.dispose]()
    })

    async function start(folder = clients.folder): Promise<ProxyProcess> {
      const { kubeconfig } = rig.cluster
      const args = [`--socket-balancing=${folder}`, '--connect-retry=annotated']
      const started = await startProxy({ netns: rig.network.node, mode, kubeconfig, args })
      await rig.settled()
      return started
    }

    async function serve(wish: ServiceWish, ...endpoints: EndpointWish[]): Promise<ApiService> {
      const service = aService(wish)
      rig.cluster.put(service, aSlice(service, endpoints.length === 0 ? ['localB', 'remoteA'] : endpoints))
      await rig.settled()
      return service
    }

    /** What the node's connection tracker knows of a connection: that it goes to an endpoint, or to the service. */
    async function wayOf(source: Netns, service: ApiService, port = 80, address = service.spec.clusterIP) {
      const { answer, conversation } = await openTcp(source, { address, port })
      try {
        if (answer.kind !== 'answered') return answer.kind
        const { client, clientPort, greeting } = answer
        const knows = (dst: string, dport: number) =>
          rig.network.node.enter(() => {
            const tracker = new Conntrack()
            const original = { src: client, sport: clientPort, dst, dport }
            const flow = tracker.lookUp(client.includes(':') ? 6 : 4, TCP, { original })
            tracker.close()
            return flow !== undefined
          })
        if (knows(address, port)) return 'by the rules'
        return knows(greeting.at, greeting.port) ? 'chosen' : 'unknown'
      } finally {
        conversation.close()
      }
    }

    /** A pod's first connection to an address goes by the rules, and is seen to arrive. */
    async function isChosen(
      source: Netns,
      service: ApiService,
      port = 80,
      address = service.spec.clusterIP,
    ): Promise<void> {
      await eventually(`sockets choose for ${address}:${port}`, async () => {
        const way = await wayOf(source, service, port, address)
        return way === 'chosen' ? undefined : way
      })
    }

    test.for([4, 6] as const)('a pod and the node connect to an endpoint itself, over IPv%d', async (family) => {
      const service = await serve({ families: [family] }, 'remoteA')
      const { localPod, otherLocalPod, node: itself } = rig.network.sources
      expect(await wayOf(localPod, service)).toBe('by the rules')
      await isChosen(localPod, service)
      expect(await wayOf(localPod, service)).toBe('chosen')
      expect(await wayOf(itself, service)).toBe('chosen')
      // Its processes are not in the cgroup.
      expect(await wayOf(otherLocalPod, service)).toBe('by the rules')
    })

    function knowsUdp(original: FlowTuple): boolean {
      return rig.network.node.enter(() => {
        const tracker = new Conntrack()
        const flow = tracker.lookUp(original.dst.includes(':') ? 6 : 4, UDP, { original })
        tracker.close()
        return flow !== undefined
      })
    }

    /** Where the datagrams of a socket go, from its port; and who has answered each of them. */
    async function waysOfUdp(
      source: Netns,
      service: ApiService,
      times: number,
    ): Promise<{ ways: string[]; hosts: string[] }> {
      const { clusterIP } = service.spec
      const family = clusterIP.includes(':') ? 6 : 4
      const conversation = await openUdp(source, { address: clusterIP, port: 80 }, { isUnconnected: true })
      const [ways, hosts] = [new Set<string>(), new Set<string>()]
      try {
        for (let i = 0; i < times; i++) {
          const answer = await conversation.say('?')
          if (answer.kind !== 'answered')
            return { ways: [answer.kind === 'failed' ? answer.code : answer.kind], hosts: [] }
          const { greeting, client, clientPort } = answer
          const { host, port, seenAs, seenPort } = greeting
          hosts.add(host)
          const endpoint = pods[host as PodName].ip[family]
          if (knowsUdp({ src: client, sport: clientPort, dst: clusterIP, dport: 80 })) ways.add('by the rules')
          else if (knowsUdp({ src: seenAs, sport: seenPort, dst: endpoint, dport: port })) ways.add('chosen')
          else ways.add('unknown')
        }
      } finally {
        conversation.close()
      }
      return { ways: [...ways], hosts: [...hosts] }
    }

    async function udpIsChosen(source: Netns, service: ApiService): Promise<void> {
      await eventually(`datagrams to ${service.spec.clusterIP} go straight`, async () => {
        const { ways } = await waysOfUdp(source, service, 1)
        return ways[0] === 'chosen' ? undefined : ways.join()
      })
    }

    const aDatagramService = (families: readonly Family[] = [4], spec: Record<string, unknown> = {}) =>
      aService({ families, ports: [{ protocol: 'UDP' }], spec })

    test.for([4, 6] as const)(
      'datagrams of a pod and of the node go to an endpoint itself, over IPv%d',
      async (family) => {
        const { localPod, otherLocalPod, node: itself } = rig.network.sources
        const service = aDatagramService([family])
        rig.cluster.put(service, aSlice(service, ['localB', 'remoteA', 'remoteB']))
        await rig.settled()
        // The maps follow the rules.
        await udpIsChosen(itself, service)
        expect((await waysOfUdp(itself, service, 3)).ways).toEqual(['chosen'])
        // A flow that has begun by the rules stays with them.
        const first = await openUdp(localPod, { address: service.spec.clusterIP, port: 80 }, { isUnconnected: true })
        const before = await first.say('?')
        await udpIsChosen(localPod, service)
        const after = await first.say('?')
        first.close()
        const seen = ({ greeting: { host } }: { greeting: Greeting }) => host
        if (before.kind !== 'answered' || after.kind !== 'answered') expect.fail(`${before.kind}, ${after.kind}`)
        expect(seen(after)).toBe(seen(before))
        const all = new Set<string>()
        for (let i = 0; i < 40; i++) {
          const { ways, hosts } = await waysOfUdp(localPod, service, 3)
          expect(ways).toEqual(['chosen'])
          expect(hosts).toHaveLength(1)
          all.add(hosts[0]!)
        }
        expect([...all].sort()).toEqual(['localB', 'remoteA', 'remoteB'])
        // Its processes are not in the cgroup.
        expect((await waysOfUdp(otherLocalPod, service, 1)).ways).toEqual(['by the rules'])
      },
    )

    test('a flow stays while its endpoint is there, and goes elsewhere when it is gone', async () => {
      const { localPod } = rig.network.sources
      const service = aDatagramService()
      const have = async (...endpoints: EndpointWish[]) => {
        rig.cluster.put(service, aSlice(service, endpoints, { name: 'of-datagrams' }))
        await rig.settled()
      }
      await have('localB')
      await udpIsChosen(localPod, service)
      const flow = await openUdp(localPod, { address: service.spec.clusterIP, port: 80 }, { isUnconnected: true })
      const host = async () => {
        const answer = await flow.say('?')
        return answer.kind === 'answered' ? answer.greeting.host : answer.kind
      }
      expect(await host()).toBe('localB')
      await have('localB', 'localC', 'remoteA')
      for (let i = 0; i < 10; i++) expect(await host()).toBe('localB')
      await have('localC')
      expect(await host()).toBe('localC')
      await have()
      // The rules refuse: that is told to connected sockets alone.
      expect(await host()).toBe('silent')
      await have('remoteA')
      expect(await host()).toBe('remoteA')
      flow.close()
    })

    test('with affinity, datagrams go where the rules have led the client', async () => {
      const { localPod } = rig.network.sources
      const service = aDatagramService([4], { sessionAffinity: 'ClientIP' })
      rig.cluster.put(service, aSlice(service, ['localB', 'localC', 'remoteA', 'remoteB']))
      await rig.settled()
      const { ways, hosts } = await waysOfUdp(localPod, service, 3)
      expect(ways).toEqual(['by the rules'])
      await udpIsChosen(localPod, service)
      for (let i = 0; i < 10; i++) expect(await waysOfUdp(localPod, service, 1)).toEqual({ ways: ['chosen'], hosts })
    })

    test('flows go on when the program is killed, and when the next one is there', async () => {
      const { localPod } = rig.network.sources
      const service = aDatagramService()
      rig.cluster.put(service, aSlice(service, ['localB', 'remoteA']))
      await rig.settled()
      await udpIsChosen(localPod, service)
      const flow = await openUdp(localPod, { address: service.spec.clusterIP, port: 80 }, { isUnconnected: true })
      expect((await flow.say('?')).kind).toBe('answered')
      await proxy.stop('SIGKILL')
      for (let i = 0; i < 5; i++) expect((await flow.say('?')).kind).toBe('answered')
      await proxy[Symbol.asyncDispose]()
      proxy = await start()
      for (let i = 0; i < 5; i++) expect((await flow.say('?')).kind).toBe('answered')
      await udpIsChosen(localPod, service)
      expect((await flow.say('?')).kind).toBe('answered')
      flow.close()
    })

    test('a service with retries goes by the rules', async () => {
      const patient = aService({})
      patient.metadata.annotations = { 'service.kube-proxy-ts.io/connect-retry': 'on' }
      rig.cluster.put(patient, aSlice(patient, ['localB', 'remoteA']))
      await rig.settled()
      const { localPod } = rig.network.sources
      for (let i = 0; i < 5; i++) {
        expect(await wayOf(localPod, patient)).toBe('by the rules')
        await sleep(100)
      }
    })

    test('with affinity a client stays where the rules have led it, over a restart, and while its endpoint is there', async () => {
      const service = aService({ spec: { sessionAffinity: 'ClientIP' } })
      const all = ['localB', 'localC', 'remoteA', 'remoteB'] as const
      const have = async (...endpoints: EndpointWish[]) => {
        rig.cluster.put(service, aSlice(service, endpoints, { name: 'sticky' }))
        await rig.settled()
      }
      const hostsOf = async (source: Netns) => {
        const hosts = new Set<string>()
        for (let i = 0; i < 15; i++) {
          const answer = await tcpProbe(source, { address: service.spec.clusterIP, port: 80 })
          hosts.add(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
          await sleep(20)
        }
        return [...hosts]
      }
      await have(...all)
      for (const source of [rig.network.sources.localPod, rig.network.sources.node]) {
        const [host = '', ...others] = await hostsOf(source)
        expect(others).toEqual([])
        await isChosen(source, service)
        expect(await hostsOf(source)).toEqual([host])
        await proxy.stop('SIGKILL')
        await proxy[Symbol.asyncDispose]()
        proxy = await start()
        expect(await hostsOf(source)).toEqual([host])
        await isChosen(source, service)
        expect(await hostsOf(source)).toEqual([host])
        const rest = all.filter((name) => name !== host)
        await have(...rest)
        const [next = '', ...more] = await hostsOf(source)
        expect(rest).toContain(next)
        expect(more).toEqual([])
        await have(...all)
      }
    })

    test.for([4, 6] as const)('so are external addresses and node ports, over IPv%d', async (family) => {
      const { localPod, node: itself } = rig.network.sources
      const [external, balancer] = family === 4 ? ['198.51.100.7', '198.51.100.8'] : ['2001:db8::7', '2001:db8::8']
      for (const externalTrafficPolicy of ['Cluster', 'Local'] as const) {
        const service = await serve({
          type: 'LoadBalancer',
          families: [family],
          ingress: [{ ip: balancer }],
          spec: { externalIPs: [external], externalTrafficPolicy },
        })
        const nodePort = service.spec.ports[0]?.nodePort ?? 0
        for (const source of [localPod, itself]) {
          await isChosen(source, service, 80, external)
          await isChosen(source, service, 80, balancer)
          await isChosen(source, service, nodePort, node.ip[family])
        }
        rig.cluster.remove(service)
      }
    })

    test('node ports on loopback are, for the node alone, as far as the mode opens them', async () => {
      const { localPod, node: itself } = rig.network.sources
      const service = await serve({ type: 'NodePort' })
      const nodePort = service.spec.ports[0]?.nodePort ?? 0
      expect(await wayOf(itself, service, nodePort, '127.0.0.1')).toBe(mode === 'iptables' ? 'chosen' : 'refused')
      expect(await wayOf(localPod, service, nodePort, '127.0.0.1')).toBe('refused')
    })

    test('endpoints come and go, and without any the rules refuse', async () => {
      const { localPod } = rig.network.sources
      const service = aService({})
      const target = { address: service.spec.clusterIP, port: 80 }
      const have = async (...endpoints: EndpointWish[]) => {
        rig.cluster.put(service, aSlice(service, endpoints, { name: 'one-slice' }))
        await rig.settled()
      }
      const hosts = async () => {
        const answers = await Promise.all(Array.from({ length: 30 }, () => tcpProbe(localPod, target)))
        return [...new Set(answers.map((each) => (each.kind === 'answered' ? each.greeting.host : each.kind)))].sort()
      }
      await have('localB')
      await isChosen(localPod, service)
      expect(await hosts()).toEqual(['localB'])
      await have('localB', 'remoteA', 'localC')
      expect(await hosts()).toEqual(['localB', 'localC', 'remoteA'])
      await have('localC')
      expect(await hosts()).toEqual(['localC'])
      await have()
      expect(await hosts()).toEqual(['refused'])
    })

    test('the metrics, /statusz, explain and top say so', async () => {
      const service = await serve({})
      const page = (await proxy.ask('/metrics'))?.body ?? ''
      const count = /^kubeproxyts_socket_balancing_frontends\{ip_family="IPv4"\} (\d+)$/m.exec(page)?.[1]
      expect(Number(count)).toBeGreaterThan(0)
      const status = (await proxy.ask('/statusz'))?.body ?? ''
      expect(status).toContain(
        `Socket balancing: for ${clients.folder}, cgroup ${clients.folder}, frontends: IPv4=${count}`,
      )
      const ask = (...words: readonly string[]) => {
        const [program = '', ...rest] = proxyCommand()
        return rig.network.node.run(program, [...rest, ...words])
      }
      expect(ask('explain', 'node', `${service.spec.clusterIP}:80`)).toContain(
        `a process of the cgroup ${clients.folder}`,
      )
      expect(ask('top', '--count=1')).toContain('without packets of connections chosen at connect()')
    })

    test('top counts the connections', async () => {
      const service = await serve({})
      await using top = new ProxyProcess(rig.network.node, ['top', '--count=4', '--output=json'])
      while (top.ended === undefined) expect(await wayOf(rig.network.sources.node, service)).toBe('chosen')
      expect(await top.exited).toBe('0')
      const rates = top
        .log()
        .split('\n')
        .flatMap((line) => (line.startsWith('{') ? (JSON.parse(line) as { rates: Rate[] }).rates : []))
      const ours = rates.filter(({ name }) => name.startsWith(`default/${service.metadata.name}`))
      expect(ours.some(({ connections, packets }) => connections > 0 && packets === 0)).toBe(true)
    })

    test('a cluster inside of a pod keeps its own Services', async () => {
      const { localPod } = rig.network.sources
      const both: ServiceWish = { ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }] }
      const [theirs, unknown] = [await serve(both), await serve(both)]
      await isChosen(localPod, unknown)
      await udpIsChosen(localPod, unknown)
      const inner = openNetns('inner-pod')
      const folder = mkdtempSync(join(tmpdir(), 'inner-cluster-'))
      const server = await serveEcho(inner, 'inner', { tcp: [8080], udp: [8080] })
      try {
        localPod.ip([
          `link add inner type veth peer name eth0 netns /proc/${process.pid}/fd/${inner.fd}`,
          'addr add 10.99.0.1/24 dev inner',
          'link set inner up',
        ])
        inner.ip([
          'link set lo up',
          'addr add 10.99.0.2/24 dev eth0',
          'link set eth0 up',
          'route add default via 10.99.0.1',
        ])
        inner.clients = clients
        localPod.setSysctls({ 'ipv4/ip_forward': 1 })
        localPod.run(
          'nft',
          ['-f', '-'],
          'table ip inner { chain post { type nat hook postrouting priority 100; ip saddr 10.99.0.0/24 oifname != "inner" masquerade; }; }',
        )
        // Its own Service has the address of one of the outer cluster.
        const service = aService({ ...both, clusterIPs: [theirs.spec.clusterIP] })
        const slice = aSlice(service, [{ address: '10.99.0.2' }])
        writeFileSync(
          join(folder, 'objects.json'),
          JSON.stringify({ kind: 'List', apiVersion: 'v1', items: [service, slice] }),
        )
        await using _inner = await startProxy({
          netns: localPod,
          mode: 'nftables',
          kubeconfig: '',
          args: [`--manifests=${folder}`],
        })
        const hosts = async (probe: typeof tcpProbe, source: Netns, { spec }: ApiService) => {
          const answers: string[] = []
          for (let i = 0; i < 30; i++) {
            const answer = await probe(source, { address: spec.clusterIP, port: 80 }, { isUnconnected: true })
            answers.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
            await sleep(20)
          }
          return [...new Set(answers)].sort()
        }
        for (const source of [localPod, inner]) {
          for (const probe of [tcpProbe, udpProbe]) {
            expect(await hosts(probe, source, theirs)).toEqual(['inner'])
            expect(await hosts(probe, source, unknown)).toEqual(['localB', 'remoteA'])
          }
        }
        expect(await wayOf(localPod, unknown)).toBe('chosen')
        expect((await waysOfUdp(localPod, unknown, 1)).ways).toEqual(['chosen'])
        // Its packets arrive with another address.
        expect(await wayOf(inner, unknown)).toBe('unknown')
        expect((await waysOfUdp(inner, unknown, 1)).ways).toEqual(['unknown'])
      } finally {
        localPod.run('nft', ['-f', '-'], 'table ip inner; delete table ip inner')
        await server[Symbol.asyncDispose]()
        inner.close()
        rmSync(folder, { recursive: true })
      }
    })

    test('when the program is killed the rules go on, and the next one chooses again', async () => {
      const { localPod } = rig.network.sources
      const service = await serve({})
      const { answer, conversation } = await openTcp(localPod, { address: service.spec.clusterIP, port: 80 })
      expect(answer.kind).toBe('answered')
      await isChosen(localPod, service)
      await proxy.stop('SIGKILL')
      expect(await wayOf(localPod, service)).toBe('by the rules')
      expect((await conversation.say('still there?')).kind).toBe('answered')
      await proxy[Symbol.asyncDispose]()
      proxy = await start()
      await isChosen(localPod, service)
      expect((await conversation.say('and now?')).kind).toBe('answered')
      conversation.close()
    })

    test('without the cgroup, it says so and the rules do all of it', async () => {
      const service = await serve({})
      await proxy.stop('SIGTERM')
      await proxy[Symbol.asyncDispose]()
      proxy = await start('/sys/fs/cgroup/not-there')
      expect(await wayOf(rig.network.sources.localPod, service)).toBe('by the rules')
      await eventually('it has said so', () =>
        proxy.log().includes('There is no cgroup /sys/fs/cgroup/not-there') ? undefined : proxy.logTail(5),
      )
    })
  })
}
