// Questions about the node: the proxy, the kernel's settings, rules of other programs.

import type { ServiceExamination, ForeignFact, NodeExamination } from './facts.ts'
import { fine, finding, unknown, type DoctorQuestion, type Verdict } from './verdict.ts'

export function askProxy({ proxy, installation }: Pick<ServiceExamination, 'proxy' | 'installation'>): Verdict {
  if (proxy.kind === 'answers') return fine(`in mode ${proxy.mode}, as node ${proxy.node}`)
  if (proxy.kind === 'other')
    return unknown(
      `another kube-proxy serves node ${proxy.node} in mode ${proxy.mode}: its rules are read, and it is not asked`,
    )
  if (proxy.kind === 'silent') {
    return finding('proxy-silent', `the proxy of this node does not answer: ${proxy.error}`, installation.logs)
  }
  return finding('proxy-none', proxy.error, installation.status)
}

export function askHears({ proxy, installation }: Pick<ServiceExamination, 'proxy' | 'installation'>): Verdict {
  if (proxy.kind !== 'answers') return undefined
  const [first] = proxy.unheard
  if (first === undefined) return fine()
  return finding('proxy-uninformed', `${first}; what has changed since then is not served`, installation.logs)
}

export function askApi({ apiError }: Pick<ServiceExamination, 'apiError'>): Verdict {
  return apiError === undefined ? undefined : unknown(apiError)
}

export const MACHINE_QUESTIONS: readonly DoctorQuestion<Pick<ServiceExamination, 'machine' | 'proxy'>>[] = [
  { text: 'does this machine forward packets', ask: askForwarding },
  { text: 'does the connection table have space', ask: askConntrack },
  { text: 'can links carry packets of the usual size', ask: askSmallest },
]

export const NODE_QUESTIONS: readonly DoctorQuestion<NodeExamination>[] = [
  { text: 'does a proxy run on this node and answer', ask: askProxy },
  { text: 'does the proxy hear of changes', ask: askHears },
  { text: 'does the API server tell about pods', ask: askApi },
  { text: 'does the kernel have the rules that the proxy decided on', ask: askDrift },
  ...MACHINE_QUESTIONS,
  { text: 'do rules of other programs let packets pass', ask: askForeign },
]

function askDrift({ drift, proxy }: NodeExamination): Verdict {
  // Its Services are compared one by one.
  if (proxy.kind === 'other') return undefined
  if (drift.length === 0) return unknown('no proxy answered')
  const [lost] = drift.filter(({ holds }) => !holds)
  if (lost !== undefined) {
    const since = new Date(lost.sinceMs).toISOString()
    return finding(
      'kernel-differs',
      `the kernel does not have the rules that the proxy decided on for IPv${lost.family}, since ${since}: ${lost.reason}`,
      'kube-proxy plan',
    )
  }
  const times = drift.reduce((sum, each) => sum + each.times, 0)
  return fine(times === 0 ? '' : `another program changed them ${times === 1 ? 'once' : `${times} times`}`)
}

function askForwarding({ machine: { forwardingOff }, proxy }: Pick<ServiceExamination, 'machine' | 'proxy'>): Verdict {
  if (forwardingOff === undefined) return unknown('the setting cannot be read')
  const [off] = forwardingOff
  if (off === undefined || ('mode' in proxy && proxy.mode === 'userspace')) return fine()
  const { setting, link } = off
  return finding(
    'forwarding-off',
    `${setting} is 0: this machine forwards no packets${link === undefined ? '' : ` that come in by ${link}`}, so only its own connections reach endpoints`,
    `sysctl -w ${setting}=1`,
  )
}

/** New connections are refused a little before it is full. */
const FULL = 0.97

function askConntrack({ machine: { conntrack } }: Pick<ServiceExamination, 'machine'>): Verdict {
  if (conntrack === undefined) return unknown('its count cannot be read')
  if (conntrack.count < conntrack.max * FULL) return fine(`${conntrack.count} of ${conntrack.max}`)
  return finding(
    'conntrack-full',
    `the connection table is full: ${conntrack.count} of ${conntrack.max}; new connections are dropped`,
    `sysctl -w net.netfilter.nf_conntrack_max=${conntrack.max * 2}`,
  )
}

function askSmallest({ machine }: Pick<ServiceExamination, 'machine'>): Verdict {
  const [small] = machine.smallMtus
  if (small === undefined) return fine()
  return finding(
    'small-mtu',
    `interface ${small.name} has an MTU of ${small.mtu}: connections open, but large packets are lost`,
    `ip link set ${small.name} mtu 1500    # what the rest of the network has`,
  )
}

export function askForeign({ foreign }: Pick<ServiceExamination, 'foreign'>): Verdict {
  if (foreign === undefined) return undefined
  const [first] = foreign.found
  if (first !== undefined) return foreignFinding(first)
  const [doubt] = foreign.doubts
  return doubt === undefined ? fine() : unknown(doubt.what, doubt.next)
}

function foreignFinding(fact: ForeignFact) {
  const { table, chain, rule, verdict, packet, owner, next } = fact
  const action = {
    drop: 'drops',
    reject: 'refuses',
    translated: 'redirects',
    untracked: 'keeps the connection tracker, which translates addresses, away from',
  }[verdict]
  const place = `table ${table}, chain ${chain}: ${rule}`
  if (owner?.kind === 'network policy') {
    const command = 'kubectl get networkpolicies --all-namespaces'
    return finding(
      'network-policy',
      `a network policy, enforced by ${owner.name}, ${action} ${packet}: ${place}`,
      command,
    )
  }
  const whose = owner === undefined ? "another program's rule" : `a rule of ${owner.name}`
  return finding('foreign-rule', `${whose} ${action} ${packet}: ${place}`, next)
}
