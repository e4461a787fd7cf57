// Least connections beside what IPVS has of the kind, on a kernel that has both: the same pods, the same clients.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { BALANCE_ANNOTATION, type Balance } from '../../src/model/balance.ts'
import { aService, aSlice } from '../support/builders.ts'
import { Cleanup } from '../support/cleanup.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { serveSlowPods, SLOW_PODS, SLOW_PORT, slowestWait } from '../support/slow-pod.ts'

interface Way {
  readonly how: string
  readonly scheduler?: string
  readonly balance?: Balance
}

const RANDOM = 'nftables, random'
const LEAST: readonly Way[] = [
  { how: 'nftables, least-connections', balance: 'least-connections' },
  { how: 'ipvs, lc', scheduler: 'lc' },
  { how: 'ipvs, wlc', scheduler: 'wlc' },
  { how: 'ipvs, sed', scheduler: 'sed' },
]

const cleanup = new Cleanup()
const waits = new Map<string, number>()
let rig: Rig

beforeAll(async () => {
  rig = cleanup.use(await openRig())
  cleanup.use(serveSlowPods(rig.network))
  waits.set(RANDOM, await measure({ how: RANDOM }))
})
afterAll(async () => {
  console.log(Array.from(waits, ([how, waitMs]) => `${how}: ${Math.round(waitMs)} ms`).join('\n'))
  await cleanup[Symbol.asyncDispose]()
})

async function measure({ scheduler, balance }: Way): Promise<number> {
  const mode = scheduler === undefined ? 'nftables' : 'ipvs'
  const args = scheduler === undefined ? [] : [`--ipvs-scheduler=${scheduler}`]
  const { kubeconfig } = rig.cluster
  await using proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig, args })
  const annotations = balance === undefined ? {} : { [BALANCE_ANNOTATION]: balance }
  const service = aService({ ports: [{ targetPort: SLOW_PORT }], annotations })
  rig.cluster.put(service, aSlice(service, SLOW_PODS))
  await rig.settled()
  const waitMs = await slowestWait(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
  expect(proxy.ended, proxy.logTail()).toBeUndefined()
  return waitMs
}

test.each(LEAST)('$how: the slowest clients wait less than half as long as at random', async (way) => {
  const waitMs = await measure(way)
  waits.set(way.how, waitMs)
  expect(waitMs).toBeLessThan(waits.get(RANDOM)! / 2)
})
