// The iptables mode among other programs and from start to end, with both backends.

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { ProxyProcess, proxyFlags, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { startTraffic } from '../support/steady-traffic.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Rig } from '../support/rig.ts'

const web = aService({
  families: [4, 6],
  type: 'NodePort',
  ports: [{ name: 'tcp' }, { name: 'udp', protocol: 'UDP' }],
})
const objects = [
  web,
  aSlice(web, ['localB', 'remoteA'], { family: 4 }),
  aSlice(web, ['localC', 'remoteB'], { family: 6 }),
  ...Array.from({ length: 50 }, () => aService({ families: [4, 6] })).flatMap((service) => [
    service,
    aSlice(service, ['localB'], { family: 4 }),
    aSlice(service, ['localC'], { family: 6 }),
  ]),
]

describe.for(['nft', 'legacy'] as const)('iptables-%s', (backend) => {
  let rig: Rig
  const proxies: ProxyProcess[] = []
  const programs = [`iptables-${backend}`, `ip6tables-${backend}`]

  beforeEach(async () => {
    rig = await openRig()
    for (const name of programs) rig.network.node.run(name, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
    rig.cluster.put(...objects)
  })
  afterEach(async () => {
    for (const proxy of proxies.splice(0)) await proxy[Symbol.asyncDispose]()
    await rig[Symbol.asyncDispose]()
  })

  async function start(mode: ModeName = 'iptables', ...args: string[]): Promise<ProxyProcess> {
    const { kubeconfig } = rig.cluster
    const often = '--iptables-min-sync-period=10ms'
    const proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig, args: [often, ...args] })
    proxies.push(proxy)
    await rig.settled()
    return proxy
  }

  /** Every rule and chain of the tables that we use, whatever the order of services. */
  function rules(): string[] {
    const { node } = rig.network
    return programs
      .flatMap((name) =>
        ['filter', 'nat', 'mangle'].flatMap((table) =>
          node
            .run(`${name}-save`, ['-t', table])
            .split('\n')
            .filter((line) => /^[:-]/.test(line))
            .map((line) => `${name} ${table} ${line.replace(/ \[\d+:\d+\]$/, '')}`),
        ),
      )
      .sort()
  }

  /** Waits for what is still under way. */
  async function rulesAre(expected: readonly string[]): Promise<void> {
    await eventually('the rules are as expected', () => differences(rules(), expected), { everyMs: 100 })
  }

  /** The rules, once they have been the same for longer than a sync period. */
  async function quietRules(): Promise<string[]> {
    const before = rules()
    await staysQuiet('the rules are as they were', () => differences(rules(), before), { forMs: 1200, everyMs: 200 })
    return before
  }

  function addUserRules(): void {
    for (const name of programs) {
      const { node } = rig.network
      node.run(name, ['-t', 'nat', '-N', 'MINE'])
      node.run(name, ['-t', 'nat', '-A', 'MINE', '-m', 'comment', '--comment', 'my own', '-j', 'RETURN'])
      node.run(name, ['-t', 'nat', '-A', 'PREROUTING', '-j', 'MINE'])
      node.run(name, ['-A', 'FORWARD', '-p', 'esp', '-j', 'ACCEPT'])
    }
  }

  function served(withinMs: number): Promise<unknown> {
    const target = { address: web.spec.clusterIPs[0]!, port: 80 }
    return eventually(
      'the service answers',
      async () => {
        const { kind } = await tcpProbe(rig.network.sources.localPod, target, aShortWhile())
        return kind === 'answered' ? undefined : kind
      },
      { withinMs, everyMs: 5 },
    )
  }

  test('what another program flushes is there again', async () => {
    // Only iptables-nft tells; with iptables-legacy the canaries are looked at every sync period.
    await start('iptables', ...(backend === 'legacy' ? ['--iptables-sync-period=1s'] : []))
    const before = await quietRules()
    for (const name of programs) {
      // At once: between -F and -X the program might mend what was flushed, and -X would find chains in use.
      const nothing = ['mangle', 'nat', 'filter'].map((table) => String.raw`*${table}\nCOMMIT\n`).join('')
      rig.network.node.run('sh', ['-c', `printf '${nothing}' | ${name}-restore`])
    }
    await served(backend === 'nft' ? 1000 : 15_000)
    const hints = programs.map((name) => `${name} mangle :KUBE-IPTABLES-HINT -`)
    await rulesAre(before.filter((line) => !hints.includes(line)))
  })

  test('what another program flushes right after the start is there again', async () => {
    await start('iptables', '--iptables-sync-period=2s')
    for (const name of programs) {
      const nothing = ['mangle', 'nat', 'filter'].map((table) => String.raw`*${table}\nCOMMIT\n`).join('')
      rig.network.node.run('sh', ['-c', `printf '${nothing}' | ${name}-restore`])
    }
    await served(15_000)
  })

  test('a single chain that another program flushes is there again', async () => {
    // With iptables-legacy, where the kernel does not tell, everything is compared every sync period, but in a fiftieth of
    // the time at most: where a comparison waits for the lock of another test, that is half a minute.
    await start('iptables', '--iptables-sync-period=1s')
    const before = await quietRules()
    for (const name of programs) rig.network.node.run(name, ['-t', 'nat', '-F', 'KUBE-SERVICES'])
    await served(backend === 'nft' ? 1000 : 30_000)
    await rulesAre(before)
  })

  test('rules of users survive start, changes, restart and cleanup', async () => {
    addUserRules()
    const users = rules()
    const first = await start()
    const extra = aService({ families: [4, 6] })
    rig.cluster.put(extra, aSlice(extra, ['localB'], { family: 4 }))
    await rig.settled()
    await first.stop('SIGTERM')
    const second = await start()
    expect(users.filter((line) => !rules().includes(line))).toEqual([])
    await second.stop('SIGTERM')
    await cleanUp()
    expect(rules().filter((line) => !users.includes(line))).toEqual([])
    expect(users.filter((line) => !rules().includes(line))).toEqual([])
  })

  test('cleanup leaves the chain that kubelet uses', async () => {
    for (const name of programs) rig.network.node.run(name, ['-t', 'mangle', '-N', 'KUBE-KUBELET-CANARY'])
    const proxy = await start()
    await proxy.stop('SIGTERM')
    await cleanUp()
    expect(rules()).toContain(`iptables-${backend} filter -A INPUT -j KUBE-FIREWALL`)
    expect(rules().filter((line) => /KUBE-(SERVICES|PROXY|SVC)/.test(line))).toEqual([])
  })

  test('a restart changes nothing and loses nothing', async () => {
    const first = await start()
    const before = rules()
    const traffic = await startTraffic([rig.network.sources.localPod, rig.network.sources.external], targets())
    await first.stop('SIGTERM')
    await start()
    expect((await traffic.stop()).losses).toEqual([])
    await rulesAre(before)
  })

  test('changing to nftables and back loses no connection and leaves nothing behind', async () => {
    const first = await start()
    const before = rules()
    const traffic = await startTraffic([rig.network.sources.localPod, rig.network.sources.external], targets())
    await first.stop('SIGTERM')
    const second = await start('nftables')
    await eventually('the iptables rules are gone', () => {
      const left = rules().filter((line) => /KUBE-(SERVICES|SVC|SEP)/.test(line))
      return left.length === 0 ? undefined : left.join('\n')
    })
    await traffic.more()
    await second.stop('SIGTERM')
    await start()
    await eventually('the nftables rules are gone', () =>
      rig.network.node.run('nft', ['list', 'tables']).includes('kube-proxy') ? 'they are not' : undefined,
    )
    await traffic.more()
    expect((await traffic.stop()).losses).toEqual([])
    await rulesAre(before)
  })

  function targets() {
    const address = web.spec.clusterIPs[0]!
    return { tcp: { address, port: 80 }, udp: { address, port: 80 } }
  }

  async function cleanUp(): Promise<void> {
    const flags = proxyFlags({ netns: rig.network.node, mode: 'iptables', kubeconfig: rig.cluster.kubeconfig })
    const cleanup = new ProxyProcess(rig.network.node, [...flags, '--cleanup'])
    proxies.push(cleanup)
    expect(await cleanup.exited, cleanup.log()).toBe('0')
  }
})

/** The lines that only one of them has; undefined when there are none. */
function differences(actual: readonly string[], expected: readonly string[]): string | undefined {
  const missing = expected.filter((line) => !actual.includes(line)).map((line) => `missing: ${line}`)
  const extra = actual.filter((line) => !expected.includes(line)).map((line) => `too many: ${line}`)
  return missing.length + extra.length === 0 ? undefined : [...missing, ...extra].join('\n')
}
