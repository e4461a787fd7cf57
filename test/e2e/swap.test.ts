// From kube-proxy to this program and back, on the kernel of this machine. The ipvs mode: test/uml/swap.test.ts.

import { testSwap } from './swap.suite.ts'

testSwap([
  { theirs: 'nftables', ours: ['nftables'] },
  { theirs: 'iptables', ours: ['iptables'] },
  { theirs: 'iptables', ours: ['nftables', 'iptables'] },
  { theirs: 'nftables', ours: ['iptables', 'nftables'] },
])
