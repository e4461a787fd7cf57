// The command line of `kube-proxy test` and `kubectl kubeproxy test`, without the way to the API server.

import { duration, text, toggle } from '../lib/command.ts'

export const testSpec = {
  name: 'test',
  summary: 'whether every kind of Service works, on every node',
  about:
    'Tries Services on a whole cluster, with whatever proxy it has: two probe pods on each node (one on its network) dial cluster IPs, node ports, external and load balancer IPs by TCP and UDP, with session affinity, traffic policies and source ranges, while endpoints come, go and terminate. Says what failed, what the failures have in common, and the next command. Everything is made in namespace kube-proxy-test and removed at the end. Run it before and after you replace a proxy.',
  options: {
    image: text(
      'IMAGE',
      'The image of the probes: this program. Default: that of kube-proxy-ts in the cluster, else kube-proxy-ts with the version of this program.',
    ),
    nodes: text('A,B', 'Only these nodes. Default: all that are ready.', ''),
    skip: text('A,B', 'Leave these lines of the table out.', ''),
    settle: duration('How long a proxy may take to follow a change.', { least: '1s', most: '10m', usual: '20s' }),
    outside: toggle('This machine reaches the nodes: also dial their node ports from here.'),
    keep: toggle('Leave the namespace as it is at the end. The next test removes it.'),
    json: text('FILE', 'Also write the result as JSON.'),
    junit: text('FILE', 'Also write the result as JUnit XML.'),
    compare: text('FILE', 'Compare with an earlier result, written with --json.'),
  },
  examples: [
    ['test --json before.json'],
    ['test --compare before.json', 'after the swap: nothing may have changed'],
    ['test --nodes node-7 --junit result.xml'],
  ],
  notes: [
    'Exit status: 0 when every check passed, and with --compare nothing changed; 2 when one failed or changed; 3 when nothing failed but a node could not be tried; 1 when the test could not run; 130 after Ctrl-C.',
  ],
} as const
