// Retries in the other modes that run on any kernel.

import { describe, expect, test } from 'vitest'
import { patience } from '../support/patience.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import {
  connectTimes,
  fewerCases,
  manyAnswered,
  openRetryRig,
  patient,
  testConnectRetry,
  testEjections,
  timed,
} from './connect-retry.suite.ts'

describe('iptables-nft', () => {
  testConnectRetry('iptables', { cases: fewerCases })
})

describe('iptables-legacy', () => {
  testConnectRetry('iptables', {
    cases: fewerCases,
    prepare: (node) => {
      // Where kubelet left its hint, that backend is used.
      for (const name of ['iptables-legacy', 'ip6tables-legacy']) {
        node.run(name, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
      }
    },
  })
})

describe('userspace', () => {
  const retry = openRetryRig('userspace')
  testEjections(retry, 'kubeproxyts_userspace_retries_total')

  test('it tries again itself: no client sees dead endpoints, and no table is needed', async () => {
    const { target } = await retry().serve({ fates: ['refuse', 'refuse'], healthy: 2 })
    expect(await connectTimes(12, retry().rig.network.sources.localPod, target)).toEqual(manyAnswered(12))
    expect(retry().rig.network.node.run('nft', ['list', 'tables'])).not.toContain('kube-proxy-retry')
  })

  test.for([1, 6])('clients of a service whose endpoints all refuse are told so within 4 s: %i', async (many) => {
    const { target } = await retry().serve({ fates: Array.from({ length: many }, () => 'refuse' as const) })
    const { answer, ms } = await timed(tcpProbe(retry().rig.network.sources.localPod, target, patient()))
    // The proxy has accepted before it finds out, so a client is connected, and then reset.
    expect(answer).toEqual({ kind: 'failed', code: 'ECONNRESET' })
    expect(ms).toBeLessThan(4000 * patience())
  })
})
