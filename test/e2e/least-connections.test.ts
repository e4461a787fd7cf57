// The proxy counts connections and moves weights: what clients of a slow pod have of it.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BALANCE_ANNOTATION, type Balance } from '../../src/model/balance.ts'
import { pods } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { eventually } from '../support/eventually.ts'
import { openTcp, tcpProbe, type Target } from '../support/netns/probe.ts'
import { proxyCommand, type ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { serveSlowPods, SLOW_PODS, SLOW_PORT, slowestWait } from '../support/slow-pod.ts'

const folder = mkdtempSync(join(tmpdir(), 'least-connections-'))
const socket = join(folder, 'control')
const cleanup = new Cleanup()
let rig: Rig
let proxy: ProxyProcess

beforeAll(async () => {
  rig = cleanup.use(await openRig())
  proxy = await start()
  cleanup.use(serveSlowPods(rig.network))
})
afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]()
  await cleanup[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const start = () =>
  startProxy({
    netns: rig.network.node,
    mode: 'nftables',
    kubeconfig: rig.cluster.kubeconfig,
    args: [`--control-socket=${socket}`],
  })

function ask(...args: string[]): string {
  const [program = '', ...rest] = proxyCommand()
  // `plan` has an exit status of its own when there is something to do.
  return rig.network.node.run('sh', [
    '-c',
    '"$@" || true',
    'sh',
    program,
    ...rest,
    ...args,
    `--control-socket=${socket}`,
  ])
}

async function aServiceWith(balance: Balance, targetPort = SLOW_PORT): Promise<Target & { name: string }> {
  const service = aService({ ports: [{ targetPort }], annotations: { [BALANCE_ANNOTATION]: balance } })
  rig.cluster.put(service, aSlice(service, SLOW_PODS))
  await rig.settled()
  return { address: service.spec.clusterIP, port: 80, name: service.metadata.name }
}

test('with least connections the slowest clients wait less than half as long as at random, after eight seconds', async () => {
  const { localPod } = rig.network.sources
  const random = await slowestWait(localPod, await aServiceWith('random'))
  const least = await slowestWait(localPod, await aServiceWith('least-connections'))
  expect(least, `ms, and ${random} ms at random`).toBeLessThan(random / 2)
})

test('a proxy that starts counts the connections that are there already', async () => {
  const { localPod } = rig.network.sources
  const to = await aServiceWith('least-connections', 8080)
  const busy = { address: pods.localC.ip[4], port: 8080 }
  const held = await Promise.all(Array.from({ length: 40 }, () => openTcp(localPod, busy)))
  try {
    await proxy[Symbol.asyncDispose]()
    proxy = await start()
    await rig.settled()
    const hosts: string[] = []
    for (let i = 0; i < 250; i++) {
      const answer = await tcpProbe(localPod, to)
      hosts.push(answer.kind === 'answered' ? answer.greeting.host : answer.kind)
      await sleep(20)
    }
    // A quarter of them at random; here a 32nd of the share of each other.
    const late = hosts.slice(100)
    expect(late.filter((host) => host === 'localC').length, hosts.join(' ')).toBeLessThan(12)
    await eventually('the plan knows of it, and so does the explanation', () => {
      const plan = ask('plan', '--family=4')
      if (!/^\* nftables +IPv4 +nothing to do/m.test(plan)) return plan
      const explanation = ask('explain', to.name)
      return /10\.1\.0\.13:8080 .*: 1 % of new connections/.test(explanation) ? undefined : explanation
    })
    expect(ask('plan', '--family=4')).toContain(`default/${to.name}: least-connections`)
  } finally {
    for (const { conversation } of held) conversation.close()
  }
})
