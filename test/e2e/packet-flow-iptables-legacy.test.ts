import { testPacketFlow } from './packet-flow.suite.ts'

// Where kubelet left its hint, that backend is used.
testPacketFlow('iptables', {
  prepare: (node) => {
    for (const name of ['iptables-legacy', 'ip6tables-legacy']) {
      node.run(name, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
    }
  },
})
