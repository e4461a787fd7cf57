// The questions that an experienced person asks, in order. The first that fails is the diagnosis, with the next command to type.

import type { Facts, ForeignFact, NodeFacts, PodFact, ServiceFact } from './facts.ts'

export interface Diagnosis {
  readonly service: string
  /** In order; those behind the first that fails are not asked. */
  readonly answers: readonly Answer[]
  readonly finding: Finding | null
}

/** Of a node: what concerns all of its Services, and then those that have a problem of their own. */
export interface NodeDiagnosis {
  readonly node: string
  readonly answers: readonly Answer[]
  readonly finding: Finding | null
  readonly services: readonly { readonly service: string; readonly finding: Finding }[]
  /** How many Services there are, and how many of them were looked at. */
  readonly count: number
  readonly looked: number
}

export interface Answer {
  readonly question: string
  readonly result: 'yes' | 'no' | 'not known'
  readonly detail: string
}

export interface Finding {
  readonly code: string
  readonly what: string
  /** The command to type next. */
  readonly next: string
}

type Verdict = { readonly ok: true; readonly detail: string } | { readonly unknown: string } | Finding

interface Question<F> {
  readonly text: string
  readonly ask: (facts: F) => Verdict
}

export function examine(facts: Facts): Diagnosis {
  return { service: facts.asked.service, ...askAll(QUESTIONS, facts) }
}

/** The questions that are of no one Service. */
export function examineMachine(facts: NodeFacts): Pick<Diagnosis, 'answers' | 'finding'> {
  return askAll(NODE_QUESTIONS, facts)
}

/** Services that are no proxy's business are as they should be. */
export function isOfProxy({ code }: Finding): boolean {
  return !['external-name', 'headless', 'another-proxy'].includes(code)
}

function askAll<F>(questions: readonly Question<F>[], facts: F): Pick<Diagnosis, 'answers' | 'finding'> {
  const answers: Answer[] = []
  for (const { text, ask } of questions) {
    const verdict = ask(facts)
    if ('code' in verdict) {
      answers.push({ question: text, result: 'no', detail: verdict.what })
      return { answers, finding: verdict }
    }
    if ('unknown' in verdict) answers.push({ question: text, result: 'not known', detail: verdict.unknown })
    else answers.push({ question: text, result: 'yes', detail: verdict.detail })
  }
  return { answers, finding: null }
}

const fine = (detail = ''): Verdict => ({ ok: true, detail })
const finding = (code: string, what: string, next: string): Finding => ({ code, what, next })

const NODE_QUESTIONS: readonly Question<NodeFacts>[] = [
  { text: 'does a proxy run on this node, and answer', ask: askProxy },
  { text: 'does the kernel hold what was decided', ask: askDrift },
  { text: 'does this machine forward packets', ask: askForwarding },
  { text: 'has the connection tracker room', ask: askConntrack },
  { text: 'are packets of the usual size let through', ask: askMtu },
  { text: 'do other programs let packets pass', ask: askForeign },
]

const QUESTIONS: readonly Question<Facts>[] = [
  { text: 'does a proxy run on this node, and answer', ask: askProxy },
  { text: 'does the Service exist', ask: askExists },
  { text: 'is it one that a proxy serves', ask: askServed },
  { text: 'is it for this proxy', ask: askOurs },
  { text: 'does it have the port', ask: askPort },
  { text: 'does its selector match a pod', ask: askSelector },
  { text: 'are its pods ready', ask: askReady },
  { text: 'does a pod have the target port', ask: askTargetPort },
  { text: 'are there endpoints for the port', ask: askEndpoints },
  { text: 'does the Service get the address', ask: askOwner },
  { text: 'is the source allowed', ask: askSource },
  { text: 'does the policy leave an endpoint for this node', ask: askPolicy },
  { text: 'is the connection sent to an endpoint', ask: askSent },
  { text: 'does the kernel hold what was decided', ask: askKernel },
  { text: 'does this machine forward packets', ask: askForwarding },
  { text: 'has the connection tracker room', ask: askConntrack },
  { text: 'are packets of the usual size let through', ask: askMtu },
  { text: 'do other programs let it pass', ask: askForeign },
  { text: 'is there a way to the endpoints', ask: askRoute },
  { text: 'are answers let in on the way by which they come', ask: askRpFilter },
  { text: 'do the endpoints answer', ask: askAnswer },
  { text: 'does the Service answer this node', ask: askService },
]

function nameOf({ asked }: Facts): { namespace: string; name: string } {
  const [namespace = '', name = ''] = asked.service.split('/')
  return { namespace, name }
}

function kubectl(facts: Facts, verb: string): string {
  const { namespace, name } = nameOf(facts)
  return `kubectl -n ${namespace} ${verb.replace('SERVICE', name)}`
}

function askProxy({ proxy }: Pick<Facts, 'proxy'>): Verdict {
  if (proxy.kind === 'answers') return fine(`in mode ${proxy.mode}, as node ${proxy.node}`)
  if (proxy.kind === 'silent') {
    return finding(
      'proxy-silent',
      `the proxy of this node does not answer: ${proxy.error}`,
      'journalctl -u kube-proxy --since -5min    # or: kubectl -n kube-system logs -l k8s-app=kube-proxy',
    )
  }
  return finding(
    'proxy-none',
    proxy.error,
    'systemctl status kube-proxy    # or: kubectl -n kube-system get pods -l k8s-app=kube-proxy -o wide',
  )
}

function askDrift({ drift }: NodeFacts): Verdict {
  if (drift.length === 0) return { unknown: 'no proxy said' }
  const [lost] = drift.filter(({ holds }) => !holds)
  if (lost !== undefined) {
    const since = new Date(lost.sinceMs).toISOString()
    return finding(
      'kernel-differs',
      `the kernel does not hold what was decided for IPv${lost.family}, since ${since}: ${lost.reason}`,
      'kube-proxy plan',
    )
  }
  const times = drift.reduce((sum, each) => sum + each.times, 0)
  return fine(times === 0 ? '' : `another program had changed it ${times} times`)
}

function askExists(facts: Facts): Verdict {
  if (facts.service !== undefined) return fine(facts.service.type)
  const near = facts.near.length === 0 ? '' : `; near it: ${facts.near.join(', ')}`
  return finding(
    'no-service',
    `there is no Service ${facts.asked.service}${near}`,
    `kubectl get services --all-namespaces | grep ${nameOf(facts).name}`,
  )
}

function askServed(facts: Facts): Verdict {
  const { service } = facts
  const { namespace, name } = nameOf(facts)
  if (service?.type === 'ExternalName') {
    return finding(
      'external-name',
      `it is an ExternalName: DNS answers with ${service.externalName}, and no proxy has a part in it`,
      `dig ${service.externalName}`,
    )
  }
  if (service?.clusterIP === 'None') {
    return finding(
      'headless',
      'it is headless (clusterIP: None): DNS answers with the addresses of its pods, and no proxy has a part in it',
      `dig ${name}.${namespace}.svc.cluster.local`,
    )
  }
  return fine()
}

function askOurs(facts: Facts): Verdict {
  const { service } = facts
  if (service?.proxyName === undefined) return fine()
  return finding(
    'another-proxy',
    `its label service.kubernetes.io/service-proxy-name is ${JSON.stringify(service.proxyName)}: another proxy is to serve it`,
    kubectl(facts, 'label service SERVICE service.kubernetes.io/service-proxy-name-'),
  )
}

function askPort(facts: Facts): Verdict {
  const { service, asked, mistake } = facts
  const ports = (service?.ports ?? []).map(describePort)
  if (
    asked.port !== '' &&
    !(service?.ports ?? []).some((port) => port.name === asked.port || String(port.port) === asked.port)
  ) {
    return finding(
      'no-port',
      `it has no port ${asked.port}, but ${ports.join(', ')}`,
      kubectl(facts, 'get service SERVICE -o wide'),
    )
  }
  if (mistake !== undefined) return finding('cannot-ask', mistake, kubectl(facts, 'get service SERVICE -o wide'))
  return fine(ports.join(', '))
}

function askSelector(facts: Facts): Verdict {
  const { service } = facts
  if (service === undefined) return fine()
  if (service.selector === undefined) {
    if (service.endpoints > 0) return fine('it has no selector; its EndpointSlices are written by hand')
    return finding(
      'no-selector',
      'it has no selector, and no EndpointSlice has been written for it',
      kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE'),
    )
  }
  if (service.pods === undefined)
    return { unknown: 'pods cannot be seen: give --kubeconfig of a user who may list them' }
  const selector = Object.entries(service.selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(',')
  if (service.pods.length === 0) {
    return finding(
      'selector-matches-nothing',
      `its selector ${selector} matches no pod`,
      kubectl(facts, 'get pods --show-labels'),
    )
  }
  return fine(`${service.pods.length} pods have ${selector}`)
}

function askReady(facts: Facts): Verdict {
  const pods = facts.service?.pods
  if (pods === undefined || pods.length === 0) return fine()
  const ready = pods.filter((pod) => pod.ready)
  if (ready.length > 0) return fine(`${ready.length} of ${pods.length}`)
  const [first] = pods as [PodFact]
  return finding(
    'pods-not-ready',
    `none of its ${pods.length} pods is ready: ${first.name} is ${first.phase}${first.why === '' ? '' : `, ${first.why}`}`,
    `kubectl -n ${nameOf(facts).namespace} describe pod ${first.name}`,
  )
}

function askTargetPort(facts: Facts): Verdict {
  const { service } = facts
  const pods = service?.pods ?? []
  for (const port of portsAsked(facts)) {
    const isName = /[a-z]/i.test(port.targetPort)
    if (!isName || pods.length === 0 || pods.some((pod) => pod.portNames.includes(port.targetPort))) continue
    const names = [...new Set(pods.flatMap((pod) => pod.portNames))]
    return finding(
      'target-port-name',
      `targetPort ${JSON.stringify(port.targetPort)} of port ${describePort(port)} is the name of no port of its pods: they have ${names.join(', ') || 'none'}`,
      kubectl(facts, 'edit service SERVICE'),
    )
  }
  return fine()
}

function askEndpoints(facts: Facts): Verdict {
  const { service, explanation } = facts
  if (explanation === undefined || service === undefined || explanation.frontend === null) return fine()
  if (explanation.backends.length > 0) return fine(`${explanation.backends.length}`)
  if (service.endpoints === 0) {
    return finding(
      'no-endpoints',
      'its EndpointSlices have no endpoint',
      kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE'),
    )
  }
  return finding(
    'endpoint-port-name',
    `its EndpointSlices have ${service.endpoints} endpoints, but for other ports: ${service.endpointPorts.join(', ')}`,
    kubectl(facts, 'get endpointslices -l kubernetes.io/service-name=SERVICE -o yaml'),
  )
}

function askOwner(facts: Facts): Verdict {
  const lost = (facts.explanation?.problems ?? []).find((text) => text.includes('does not get it'))
  if (lost === undefined) return fine()
  return finding('address-taken', lost, 'kubectl get services --all-namespaces -o wide')
}

function askSource(facts: Facts): Verdict {
  const sources = facts.explanation?.sources
  if (sources === undefined || sources === null || sources.allowed) return fine()
  return finding(
    'source-not-allowed',
    sources.why,
    kubectl(facts, "get service SERVICE -o jsonpath='{.spec.loadBalancerSourceRanges}'"),
  )
}

function askPolicy(facts: Facts): Verdict {
  const { explanation } = facts
  if (explanation === undefined || explanation.policy === null) return fine()
  const { policy, outcome, backends } = explanation
  if (outcome === 'to' || outcome === 'untouched') return fine(policy.why)
  if (policy.list !== 'Local') return fine(policy.why)
  const where = [...new Set(backends.map(({ node }) => node))].join(', ')
  return finding(
    policy.field === 'internalTrafficPolicy' ? 'internal-policy-local' : 'external-policy-local',
    `spec.${policy.field} is Local, and no usable endpoint is on this node; they are on ${where}`,
    kubectl(facts, 'get pods -o wide'),
  )
}

function askSent(facts: Facts): Verdict {
  const { explanation } = facts
  if (explanation === undefined) return { unknown: 'nothing was decided' }
  if (explanation.outcome === 'to') return fine(explanation.because)
  const [miss] = explanation.misses
  return finding(
    'not-sent',
    `${explanation.headline}${miss === undefined ? '' : ` Near it: ${miss.what}: ${miss.why}`}`,
    `kube-proxy explain ${facts.asked.from} ${facts.asked.service}`,
  )
}

function askKernel(facts: Facts): Verdict {
  const kernel = facts.explanation?.kernel
  if (kernel === undefined || kernel === null) return { unknown: 'no kernel was looked at' }
  if (kernel.error !== null) return { unknown: kernel.error }
  const [difference] = kernel.differences
  if (difference === undefined) return fine(kernel.what)
  return finding('kernel-differs', difference, `kube-proxy explain ${facts.asked.from} ${facts.asked.service}`)
}

function askForwarding({
  machine,
  proxy,
  explanation,
}: Pick<Facts, 'machine' | 'proxy'> & Partial<Pick<Facts, 'explanation'>>): Verdict {
  if (machine.forwarding === undefined) return { unknown: 'the setting cannot be read' }
  if (machine.forwarding || (proxy.kind === 'answers' && proxy.mode === 'userspace')) return fine()
  const setting =
    explanation?.question.destination.includes(':') === true ? 'net.ipv6.conf.all.forwarding' : 'net.ipv4.ip_forward'
  return finding(
    'forwarding-off',
    `${setting} is 0: this machine passes nothing on, so only its own connections reach endpoints`,
    `sysctl -w ${setting}=1`,
  )
}

/** New connections are refused a little before it is full. */
const FULL = 0.97

function askConntrack({ machine: { conntrack } }: Pick<Facts, 'machine'>): Verdict {
  if (conntrack === undefined) return { unknown: 'its count cannot be read' }
  if (conntrack.count < conntrack.max * FULL) return fine(`${conntrack.count} of ${conntrack.max}`)
  return finding(
    'conntrack-full',
    `the connection tracker is full: ${conntrack.count} of ${conntrack.max}; new connections are dropped`,
    `sysctl -w net.netfilter.nf_conntrack_max=${conntrack.max * 2}`,
  )
}

function askMtu({ machine }: Pick<Facts, 'machine'>): Verdict {
  const [small] = machine.smallMtus
  if (small === undefined) return fine()
  return finding(
    'small-mtu',
    `interface ${small.name} has an MTU of ${small.mtu}: connections begin, and large packets get lost`,
    `ip link set ${small.name} mtu 1500    # what the rest of the network has`,
  )
}

function askForeign({ foreign }: Pick<Facts, 'foreign'>): Verdict {
  const [first] = foreign
  return first === undefined ? fine() : finding('foreign-rule', describeForeign(first), first.next)
}

function askRoute({ tries }: Facts): Verdict {
  const lost = tries.find(({ result }) => result === 'no route')
  if (lost === undefined) return fine()
  const ip = hostOf(lost.to)
  return finding('no-route', `this machine has no way to the endpoint ${lost.to}: ${lost.error}`, `ip route get ${ip}`)
}

function askRpFilter({ machine: { strictRpFilter, rpFiltered }, tries }: Facts): Verdict {
  const lost = tries.find(({ result }) => result === 'no answer')
  const [link] = strictRpFilter
  if (lost === undefined || link === undefined || rpFiltered === 0) return fine()
  return finding(
    'rp-filter',
    `rp_filter is strict on ${strictRpFilter.join(', ')}, and dropped ${rpFiltered} packets while ${lost.to} was dialled: its answers come by another way than the route to it`,
    `sysctl -w net.ipv4.conf.${link}.rp_filter=2    # and compare: ip route get ${hostOf(lost.to)}`,
  )
}

function askAnswer({ tries }: Facts): Verdict {
  const asked = tries.filter(({ result }) => result !== 'not tried')
  if (asked.length === 0) return { unknown: 'only TCP can be tried' }
  const refused = asked.find(({ result }) => result === 'refused')
  if (refused !== undefined) {
    return finding(
      'endpoint-refuses',
      `the endpoint ${refused.to} refuses: nothing listens on that port in the pod`,
      `kubectl exec ${refused.pod || 'POD'} -- ss -ltn    # what does it listen on? Compare with targetPort`,
    )
  }
  const silent = asked.find(({ result }) => result === 'no answer')
  if (silent !== undefined) {
    return finding(
      'endpoint-silent',
      `the endpoint ${silent.to} does not answer: packets get lost on the way there or back, or the pod drops them`,
      'kubectl get networkpolicies --all-namespaces    # then, in the pod: tcpdump -ni any tcp',
    )
  }
  return fine(asked.map(({ to }) => to).join(', '))
}

function askService({ serviceTry, machine, asked }: Facts): Verdict {
  if (serviceTry === undefined) return { unknown: 'not tried from here' }
  if (serviceTry.result === 'connected') return fine()
  const rp = machine.strictRpFilter.length === 0 ? '' : `; rp_filter is strict on ${machine.strictRpFilter.join(', ')}`
  return finding(
    'service-silent',
    `${serviceTry.to} does not answer this node (${serviceTry.error}), though its endpoints do${rp}`,
    `kube-proxy explain ${asked.from} ${asked.service} --send`,
  )
}

function portsAsked({ service, asked }: Facts): ServiceFact['ports'] {
  const ports = service?.ports ?? []
  if (asked.port === '') return ports
  return ports.filter((port) => port.name === asked.port || String(port.port) === asked.port)
}

function describePort({ name, port, protocol }: ServiceFact['ports'][number]): string {
  return `${name === '' ? '' : `${name} `}${port}/${protocol}`
}

function describeForeign({ table, chain, rule, verdict, packet }: ForeignFact): string {
  const deed = { drop: 'drops', reject: 'refuses', translated: 'sends elsewhere' }[verdict]
  return `another program's rule ${deed} ${packet}: table ${table}, chain ${chain}: ${rule}`
}

function hostOf(text: string): string {
  return text.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}
