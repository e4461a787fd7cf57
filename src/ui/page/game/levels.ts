// The ten failures of the game, from the plainest on. Each is one that doctor finds, under the same name.

import type { DoctorRequest, LoadRequest, Planted } from '../../protocol.ts'

export interface Level {
  readonly failure: Exclude<Planted, 'none'>
  /** What people complain about. */
  readonly symptom: string
  readonly hint: string
  /** The cause, in the words of the list to choose from. */
  readonly cause: string
  readonly lesson: string
  /** How it was planted. */
  readonly command: string
}

const patch = (spec: object) => `kubectl patch service whoami -p '${JSON.stringify({ spec })}'`

export const levels: readonly Level[] = [
  {
    failure: 'selector-matches-nothing',
    symptom: 'Every client is refused at once. The pods are fine, say their owners.',
    hint: 'The rules refuse by themselves when a Service has no endpoint. Which labels does it look for?',
    cause: 'The selector of the Service matches no pod',
    lesson:
      'Without endpoints the proxy refuses, so that clients need not wait. A selector with a typo is no error to the API.',
    command: patch({ selector: { app: 'whoarni' } }),
  },
  {
    failure: 'endpoint-refuses',
    symptom: 'About one client in three is refused. Trying again helps.',
    hint: 'The line that is red ends at the culprit.',
    cause: 'One pod refuses connections',
    lesson:
      'The kernel chooses among all ready endpoints. Until a probe notices, a share of the clients meets the broken one; connect retry would spare them.',
    command: 'kubectl annotate pod POD sandbox/fail=refuse',
  },
  {
    failure: 'target-port-name',
    symptom: 'Every client is refused at once, though the selector matches three pods that are ready.',
    hint: 'A Service names the port of its pods by number or by name. Does any container have that name?',
    cause: 'The target port is a name that no container has',
    lesson: 'Endpoints need a port. Pods without a port of that name give none.',
    command: patch({ ports: [{ port: 3000, nodePort: 30000, targetPort: 'web' }] }),
  },
  {
    failure: 'pods-not-ready',
    symptom: 'Every client is refused at once. Selector and ports are right.',
    hint: 'Look at the state of the pods.',
    cause: 'No pod is ready',
    lesson: 'An endpoint that is not ready gets no connections. Without a ready one it is as if there were none.',
    command: 'kubectl annotate pod --selector app=whoami sandbox/ready=false',
  },
  {
    failure: 'endpoint-silent',
    symptom: 'About one client in three waits for ever. All pods are ready.',
    hint: 'Silence is not a refusal: something takes the packets and does not answer.',
    cause: 'One pod takes packets and does not answer',
    lesson: 'A refusal is an answer; silence costs each client its whole patience.',
    command: 'kubectl annotate pod POD sandbox/fail=hang',
  },
  {
    failure: 'internal-policy-local',
    symptom: 'A client on node-2 gets no answer. The same Service works from elsewhere.',
    hint: 'Which pods may a client of node-2 be sent to?',
    cause: 'The internal traffic policy is Local, and that node has no ready pod',
    lesson: 'With internalTrafficPolicy Local a node uses its own pods alone, and drops what they cannot take.',
    command: `${patch({ internalTrafficPolicy: 'Local' })}    # and no ready pod on node-2`,
  },
  {
    failure: 'source-not-allowed',
    symptom: 'Clients of the load balancer get no answer. The cluster IP works.',
    hint: 'The Service itself says who may come.',
    cause: 'The source ranges of the load balancer leave the client out',
    lesson: 'loadBalancerSourceRanges is a firewall at the load-balancer IP: others are dropped silently.',
    command: patch({ loadBalancerSourceRanges: ['192.0.2.0/24'] }),
  },
  {
    failure: 'foreign-rule',
    symptom: 'No client outside gets an answer. Objects and pods are fine, and the proxy has programmed all of it.',
    hint: 'The proxy is not the only program that may write rules. Does the packet leave node-1?',
    cause: 'Rules of another program drop the packets on the node',
    lesson:
      'A drop is final: no other table can save the packet. The drop comes behind the translation, so the rule sees the port of the pod.',
    command: `nft 'table inet office { chain forward { type filter hook forward priority 0; tcp dport 3000 drop; }; }'    # on node-1`,
  },
  {
    failure: 'forwarding-off',
    symptom: 'No client outside gets an answer. From node-1 itself the Service works.',
    hint: 'A node that passes on packets of others is a router. Is it allowed to be one?',
    cause: 'The node does not forward packets',
    lesson: 'With net.ipv4.ip_forward=0 the kernel translates the packet, and then throws it away.',
    command: 'sysctl net.ipv4.ip_forward=0    # on node-1',
  },
  {
    failure: 'no-route',
    symptom: 'Some clients wait for ever, others never do. Every pod answers its own node.',
    hint: 'What do the pods that fail have in common? How does node-1 reach them?',
    cause: 'The node has no route to the pods of another',
    lesson:
      'The rules are right, and the pod is well: the way between is missing. A blackhole is a route that leads nowhere.',
    command: 'ip route add blackhole 10.244.2.0/25    # on node-1',
  },
]

/** What doctor is to be asked: about the client that fails. */
export function questionOf(load: LoadRequest | null): DoctorRequest {
  const service = 'default/whoami'
  if (load === null) return { service }
  return load.from === 'outside' ? { service, from: 'outside' } : { service, node: load.from }
}

export const POINTS = { solved: 100, hint: 30, wrong: 20 } as const
