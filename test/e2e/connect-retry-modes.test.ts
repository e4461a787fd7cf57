// Retries in the other modes. Rules of iptables follow an ejection after a second, or two: until then a client may meet the
// same endpoint again.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Cleanup } from '../support/cleanup.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import { connectTimes, fewerCases, manyAnswered, RetryRig, testConnectRetry } from './connect-retry.suite.ts'

describe('iptables-nft', () => {
  testConnectRetry('iptables', { cases: fewerCases, dead: 1 })
})

describe('iptables-legacy', () => {
  testConnectRetry('iptables', {
    cases: fewerCases,
    dead: 1,
    only: 'cases',
    prepare: (node) => {
      // Where kubelet left its hint, that backend is used.
      for (const name of ['iptables-legacy', 'ip6tables-legacy']) {
        node.run(name, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
      }
    },
  })
})

describe('userspace', () => {
  const cleanup = new Cleanup()
  let retry: RetryRig
  beforeAll(async () => {
    const rig = cleanup.use(await openRig())
    const { kubeconfig } = rig.cluster
    const args = ['--connect-retry']
    const proxy = cleanup.use(await startProxy({ netns: rig.network.node, mode: 'userspace', kubeconfig, args }))
    retry = new RetryRig(rig, () => proxy)
  })
  afterAll(() => cleanup[Symbol.asyncDispose]())

  test('tries again itself, and shares suspects and metrics', async () => {
    const { target, addresses } = await retry.serve({ fates: ['refuse'], healthy: 2 })
    const from = retry.rig.network.sources.localPod
    expect(await connectTimes(8, from, target)).toEqual(manyAnswered(8))
    const [dead] = addresses
    const status = async () => (await retry.proxy().ask('/statusz'))?.body ?? ''
    await eventually('it is ejected', async () =>
      (await status()).includes(`${dead}:8080 ejected`) ? undefined : 'no',
    )
    expect(await retry.metric('kubeproxyts_connect_retry_ejected_total')).toBe(1)
    const attempts = retry.failing.attempts('refuse').get(dead!) ?? 0
    expect(await connectTimes(8, from, target)).toEqual(manyAnswered(8))
    // This node's own trials, and no client.
    expect((retry.failing.attempts('refuse').get(dead!) ?? 0) - attempts).toBeLessThan(4)
    retry.failing.clear(dead!, 'refuse')
    await eventually('it is back', async () => ((await status()).includes('ejected for') ? 'no' : undefined), {
      withinMs: 10_000,
    })
    expect(retry.rig.network.node.run('nft', ['list', 'tables'])).not.toContain('kube-proxy-retry')
  })
})
