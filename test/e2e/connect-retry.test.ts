// Retries in the nftables mode: what every mode keeps, and what must not happen.

import { describe, expect, test } from 'vitest'
import { anExternalIp, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openTcp, tcpProbe } from '../support/netns/probe.ts'
import { ProxyProcess, proxyFlags } from '../support/proxy-process.ts'
import { connectTimes, hostOf, manyAnswered, patient, refusesAtOnce, testConnectRetry } from './connect-retry.suite.ts'

const retry = testConnectRetry('nftables')
const localPod = () => retry().rig.network.sources.localPod
const TABLE = 'kube-proxy-retry'

describe.concurrent('what must not happen', () => {
  test('a healthy endpoint ejected because of clients that send their SYNs again', async () => {
    const { target, addresses } = await retry().serve({ healthy: 2 })
    const { localC, localB } = retry().rig.network.pods
    // It hears them and does not answer, as a network policy would have it; others it answers.
    const from = localB.run('ip', ['-4', '-o', 'addr', 'show', 'dev', 'eth0']).match(/inet ([\d.]+)/)![1]!
    localC.run(
      'nft',
      ['-f', '-'],
      [
        'table ip deaf {',
        'chain input {',
        'type filter hook input priority 0;',
        `ip saddr ${from} ip daddr { ${addresses.join(', ')} } drop`,
        '}',
        '}',
      ].join('\n'),
    )
    const suspected = await retry().metric('kubeproxyts_connect_retry_suspected_total')
    const probes = Array.from({ length: 8 }, () => tcpProbe(localB, target, { timeoutMs: 3500 }))
    expect(new Set((await Promise.all(probes)).map(({ kind }) => kind))).toEqual(new Set(['silent']))
    expect(await retry().metric('kubeproxyts_connect_retry_suspected_total')).toBeGreaterThan(suspected)
    const status = (await retry().proxy().ask('/statusz'))?.body ?? ''
    for (const address of addresses) expect(status).not.toContain(`${address}:8080 ejected`)
    const where = new Set<string>()
    for (let i = 0; i < 16; i++) {
      const answer = await tcpProbe(localPod(), target, patient())
      where.add(answer.kind === 'answered' ? hostOf(answer.greeting.at) : answer.kind)
    }
    expect(where).toEqual(new Set(addresses))
  })

  test('a connection that is open ended by its endpoint’s ejection', async () => {
    const { target, addresses } = await retry().serve({ healthy: 2 })
    const { answer, conversation } = await openTcp(localPod(), target, patient())
    const at = answer.kind === 'answered' ? hostOf(answer.greeting.at) : answer.kind
    expect(addresses).toContain(at)
    retry().failing.set(at, 'refuse')
    await eventually('it is ejected', async () => {
      expect(await connectTimes(1, localPod(), target)).toEqual(['answered'])
      const status = (await retry().proxy().ask('/statusz'))?.body ?? ''
      return status.includes(`${at}:8080 ejected`) ? undefined : 'not yet'
    })
    expect((await conversation.say('still there?')).kind).toBe('answered')
    conversation.close()
    // The other one is the only one left: when it refuses too, that is told at once.
    retry().failing.set(
      addresses.find((each) => each !== at)!,
      'refuse',
    )
    await eventually('it refuses', () => refusesAtOnce(localPod(), target))
  })

  test('a client sent where its policy does not allow', async () => {
    const balancer = anExternalIp(4)
    const { service, slice, addresses } = await retry().serve({
      type: 'LoadBalancer',
      ingress: [{ ip: balancer, ipMode: 'VIP' }],
      spec: { externalTrafficPolicy: 'Local' },
      fates: ['refuse'],
      healthy: 2,
    })
    retry().rig.cluster.put(aSlice(service, ['remoteA', 'remoteB']), slice)
    await retry().rig.settled()
    const where = new Set<string>()
    for (let i = 0; i < 16; i++) {
      const answer = await tcpProbe(retry().rig.network.sources.external, { address: balancer, port: 80 }, patient())
      where.add(answer.kind === 'answered' ? hostOf(answer.greeting.at) : answer.kind)
    }
    expect([...where].sort()).toEqual(addresses.slice(1).sort())
  })

  // Alone: above the limit of retries, clients of other services see refusals, too.
  test.sequential('a flood of failures that stops the proxy, or that hides a refusal for ever', async () => {
    const clients = 2500
    const { target, addresses } = await retry().serve({ fates: Array.from({ length: 6 }, () => 'refuse' as const) })
    const probes = Array.from({ length: clients }, () => tcpProbe(localPod(), target, patient()))
    const answers = await Promise.all(probes)
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['refused']))
    // Within the limit a client sends three SYNs, above it one, as before.
    const attempts = retry().failing.attempts('refuse')
    const syns = addresses.reduce((sum, address) => sum + (attempts.get(address) ?? 0), 0)
    expect(syns).toBeGreaterThan(clients)
    expect(syns).toBeLessThan(3 * clients)
    expect((await retry().proxy().health())?.status).toBe(200)
    const healthy = await retry().serve({ fates: ['refuse'], healthy: 2 })
    expect(await connectTimes(8, localPod(), healthy.target)).toEqual(manyAnswered(8))
  })
})

test('a Service may decline, at any time', async () => {
  const off = await retry().serve({ fates: ['refuse', 'refuse'], annotation: 'off' })
  expect(await refusesAtOnce(localPod(), off.target)).toBeUndefined()
  const { metadata, ...rest } = off.service
  retry().failing.clear(off.addresses[1]!, 'refuse')
  retry().rig.cluster.put({
    ...rest,
    metadata: { ...metadata, annotations: {} },
  })
  await retry().rig.settled()
  expect(await connectTimes(12, localPod(), off.target)).toEqual(manyAnswered(12))
})

// The last ones: they end the proxy.
test('a table that another program removes is made again', async () => {
  const { node: netns } = retry().rig.network
  netns.run('nft', ['delete', 'table', 'ip', TABLE])
  await eventually('it is there', () =>
    netns.run('nft', ['list', 'tables']).includes(`ip ${TABLE}`) ? undefined : 'it is not',
  )
  const { target } = await retry().serve({ fates: ['refuse', 'refuse'], healthy: 2 })
  expect(await connectTimes(8, localPod(), target)).toEqual(manyAnswered(8))
})

test('a proxy that is killed leaves nothing that drops resets for long, and --cleanup leaves nothing', async () => {
  const { target } = await retry().serve({ fates: Array.from({ length: 6 }, () => 'refuse' as const) })
  const { node: netns } = retry().rig.network
  await retry().proxy().stop('SIGKILL')
  await eventually('resets pass', () => refusesAtOnce(localPod(), target), { withinMs: 8000 })
  expect(netns.run('nft', ['list', 'tables'])).toContain(TABLE)
  const { kubeconfig } = retry().rig.cluster
  const flags = proxyFlags({ netns, mode: 'nftables', kubeconfig })
  await using cleaner = new ProxyProcess(netns, [...flags, '--cleanup'])
  expect(await cleaner.exited).toBe('0')
  expect(netns.run('nft', ['list', 'tables'])).not.toContain(TABLE)
})
