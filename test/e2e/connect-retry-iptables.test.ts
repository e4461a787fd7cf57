// Rules of this mode follow an ejection after a second, or two: until then a client may meet the same endpoint again.

import { describe } from 'vitest'
import { fewerCases, testConnectRetry } from './connect-retry.suite.ts'

describe('iptables-nft', () => {
  testConnectRetry('iptables', { cases: fewerCases, dead: 1 })
})

describe('iptables-legacy', () => {
  testConnectRetry('iptables', {
    cases: fewerCases,
    dead: 1,
    prepare: (node) => {
      // Where kubelet left its hint, that backend is used.
      for (const name of ['iptables-legacy', 'ip6tables-legacy']) {
        node.run(name, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
      }
    },
  })
})
