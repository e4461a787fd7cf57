// Questions about the network: routes, packet sizes, whether endpoints and the service answer, and old flows.

import type { EndFact, EndpointFacts, ForeignDoubt, ServiceExamination, TryFact, WayFact } from './facts.ts'
import { explainCommand } from './ask-decision.ts'
import { endText, nextOfEnd } from './packet-end.ts'
import { formatIp, joinHostPort, splitHostPort } from '../../lib/ip.ts'
import { fine, finding, unknown, type DoctorFinding, type DoctorQuestion, type Verdict } from './verdict.ts'

export const NETWORK_QUESTIONS: readonly DoctorQuestion<ServiceExamination>[] = [
  { text: 'do the endpoints belong to pods', ask: askOwner },
  { text: 'is there a route to the endpoints', ask: askRoute },
  { text: 'is there a route back to the client', ask: askWayBack },
  { text: 'do packets of the pods fit through the links', ask: askSize },
  { text: 'does rp_filter accept the answers', ask: askRpFilter },
  { text: 'does session affinity lead to an endpoint that answers', ask: askAffinity },
  { text: 'do the endpoints answer', ask: askAnswer },
  { text: 'do old flows lead to endpoints that exist', ask: askStaleFlows },
  { text: 'does the Service answer the client', ask: askService },
]

/** Those of any address of the service. */
export const ADDRESS_QUESTIONS: readonly DoctorQuestion<AboutEndpoints & Pick<ServiceExamination, 'machine'>>[] = [
  { text: 'is there a route to the endpoints', ask: askRoute },
  { text: 'do the endpoints answer', ask: askAnswer },
  // That it cannot be tried is said once, of the first address.
  { text: 'does the Service answer the client', ask: (facts) => facts.serviceTry && askService(facts) },
]

function askRoute({ ways }: Pick<EndpointFacts, 'ways'>): Verdict {
  if (ways === undefined) return undefined
  for (const { to, way, mismatch, silentHop, ofClient } of ways) {
    const shown = `ip route get ${splitHostPort(to).ip}`
    if (way.kind === 'none')
      return finding('no-route', `this machine has no route to the endpoint ${to}: ${way.error}`, shown)
    if (ofClient?.way.kind === 'none')
      return finding(
        'no-route',
        `${ofClient.packets} have no route to the endpoint ${to}: ${ofClient.way.error}`,
        ofClient.shown,
      )
    if (mismatch !== undefined) return finding('wrong-route', `the endpoint ${to} ${mismatch}`, shown)
    if (silentHop === undefined || way.kind !== 'link') continue
    const [asked, whose] = [
      silentHop.includes(':') ? 'ND' : 'ARP',
      silentHop === splitHostPort(to).ip ? '' : `, the next hop to the endpoint ${to}`,
    ]
    return finding(
      'next-hop-silent',
      `nobody on ${way.link} answers for the address ${silentHop} (${asked})${whose}: it is gone, its link is down, or what asks for it is dropped`,
      `ip neigh show ${silentHop}`,
    )
  }
  return fine(linksOf(ways))
}

function linksOf(ways: readonly WayFact[]): string {
  return [...new Set(ways.flatMap(({ way }) => (way.kind === 'link' ? [way.link] : [])))].join(', ')
}

function askWayBack({ wayBack }: ServiceExamination): Verdict {
  if (wayBack === undefined) return undefined
  const { to, way, ofClient } = wayBack
  if (ofClient?.way.kind === 'none')
    return finding(
      'no-way-back',
      `answers, ${ofClient.packets}, have no route to the client ${to}: ${ofClient.way.error}`,
      ofClient.shown,
    )
  if (way.kind !== 'none') return fine(way.kind === 'link' ? way.link : '')
  return finding(
    'no-way-back',
    `this machine has no route back to the client ${to}: ${way.error}; answers that pass through it are lost`,
    `ip route get ${to}`,
  )
}

function askSize({ ways, machine: { podMtu } }: ServiceExamination): Verdict {
  if (ways === undefined || podMtu === undefined) return undefined
  for (const { to, way } of ways) {
    if (way.kind !== 'link' || way.mtu >= podMtu.mtu) continue
    return finding(
      'small-mtu',
      `pods of this node may send packets of ${podMtu.mtu} bytes (${podMtu.link}), but the link to ${to} carries only ${way.mtu} (${way.link}): connections open, and large packets are lost unless the pod learns the smaller size`,
      `ip link show ${way.link}    # raise its MTU, or lower that of the pods in the network plugin's configuration`,
    )
  }
  return fine(`${podMtu.mtu} bytes`)
}

function askRpFilter({ machine: { strictRpFilter, rpFiltered }, tries }: ServiceExamination): Verdict {
  const lost = tries.find(({ result }) => result === 'no answer')
  const [link] = strictRpFilter
  if (lost === undefined || link === undefined || rpFiltered === 0) return fine()
  return finding(
    'rp-filter',
    `rp_filter is strict on ${strictRpFilter.join(', ')}, and dropped ${rpFiltered} packets during the attempt to reach ${lost.to}: its answers arrive on another link than the route to it`,
    `sysctl -w net.ipv4.conf.${link}.rp_filter=2    # and compare: ip route get ${splitHostPort(lost.to).ip}`,
  )
}

function askAffinity(facts: ServiceExamination): Verdict {
  const { explanation, tries, asked } = facts
  const backend = explanation?.affinity?.backend
  if (backend === undefined || backend === null) return undefined
  const tried = tries.find(({ to }) => to === backend)
  if (tried === undefined) return undefined
  if (tried.result === 'connected') return fine(backend)
  const left = explanation?.affinity?.secondsLeft
  return finding(
    'affinity-pins',
    `session affinity sends ${asked.from === 'node' ? 'this node' : asked.from} to ${backend}, which ${resultText(tried)}${left === null || left === undefined ? '' : `, for another ${left} s`}`,
    explainCommand(facts),
  )
}

type AboutEndpoints = Pick<ServiceExamination, 'asked' | 'foreign' | 'explanation'> & EndpointFacts

/** Of the service, or of one of its addresses. */
function askAnswer(facts: AboutEndpoints): Verdict {
  const { tries, foreign, explanation } = facts
  if (tries.length === 0) return explanation === undefined ? undefined : askEnds(facts)
  const failed = tries.filter(({ result }) => result !== 'connected')
  const [first] = failed
  const eligible = explanation?.backends.filter((each) => each.eligible).length ?? tries.length
  if (first === undefined) {
    return fine(tries.length === eligible ? `${eligible} of ${eligible}` : `${tries.length} tested, of ${eligible}`)
  }
  const [wall] = foreign?.walls ?? []
  if (wall !== undefined) return unknown(`this node cannot test ${first.to}: ${wall.what}`, wall.next)
  const isOne = failed.length === 1 || tries.length === 1
  const share = tries.length === 1 ? 'the endpoint' : `${failed.length} of ${tries.length} endpoints`
  const ended = facts.ends?.find(({ to }) => to === first.to)
  if (first.result === 'not possible') return notPossible(first)
  if (first.result === 'refused') {
    return finding(
      'endpoint-refuses',
      `${share} ${isOne ? 'refuses' : 'refuse'} connections: ${failed.map(({ to }) => to).join(', ')}: ${whyRefused(first)}`,
      showListeners(first),
    )
  }
  const insideWhy = whySilent(first)
  if (insideWhy !== undefined)
    return finding(
      'endpoint-silent',
      `${share} ${isOne ? 'does' : 'do'} not answer: ${first.to}: ${insideWhy}`,
      nextInside(first),
    )
  const [code, does] =
    first.result === 'unreachable'
      ? ['endpoint-unreachable', 'cannot be reached']
      : ['endpoint-silent', isOne ? 'does not answer' : 'do not answer']
  const answered = first.result === 'unreachable' ? `; a machine on the way says so (${first.error})` : ''
  if (ended !== undefined)
    return withLost(
      finding(code, `${share} ${does}${answered}: ${endText(ended)}`, nextOfEnd(ended, first.pod)),
      ended,
      facts,
    )
  const [doubt] = foreign?.doubts ?? []
  const engines = foreign?.policyEngines ?? []
  const policy = engines.length === 0 ? '' : `; network policies are enforced here (${engines.join(', ')})`
  const lost =
    first.result === 'unreachable'
      ? `: ${first.to}`
      : `: packets to ${first.to} or the answers are lost, or the pod drops them`
  return finding(
    code,
    `${share} ${does}${answered}${lost}${doubt === undefined ? policy : `; and ${doubt.what}`}`,
    doubt?.next ??
      (engines.length > 0
        ? 'kubectl get networkpolicies --all-namespaces'
        : `kube-proxy doctor ${targetOf(facts)} --send`),
  )
}

/** Of which the other machine may know more. */
function withLost(
  of: DoctorFinding,
  { to, droppedBy, drops }: EndFact,
  { explanation }: AboutEndpoints,
): DoctorFinding {
  const backend = explanation?.backends.find(({ address, port }) => joinHostPort(address, port) === to)
  if (backend === undefined || droppedBy !== null || (drops ?? []).length > 0) return of
  return { ...of, lost: { endpoint: `${to}/${explanation!.question.protocol}`, node: backend.node } }
}

/** Nobody keeps the EndpointSlices: the controller manager is away, or they were written by hand. */
function askOwner({ tries, asked }: AboutEndpoints): Verdict {
  const tried = tries.find(({ isNobodys, result }) => isNobodys === true && result !== 'connected')
  if (tried === undefined) return undefined
  const [namespace, name] = asked.service.split('/')
  return finding(
    'stale-endpoint',
    `the endpoint ${tried.to} ${resultText(tried)}, and no pod has its address: an EndpointSlice is old, or of another source than the pods`,
    `kubectl -n ${namespace} get endpointslices -l kubernetes.io/service-name=${name} -o wide`,
  )
}

/** This machine sends nothing at all: its own settings or programs are the reason. */
function notPossible({ to, error }: TryFact): DoctorFinding {
  const [why, next] = OWN_ERRORS[error] ?? ['its own error', 'dmesg']
  return finding('cannot-dial', `this node cannot open a connection to ${to}: ${why} (${error})`, next)
}

const OWN_ERRORS: Readonly<Record<string, readonly [why: string, next: string]>> = {
  EPERM: ['a policy of xfrm, a security module or a BPF program forbids it', 'ip xfrm policy'],
  EADDRNOTAVAIL: ['it has no free local port', 'sysctl net.ipv4.ip_local_port_range    # and: ss -s'],
  EMFILE: ['this process has too many open files', 'ulimit -n'],
  ENFILE: ['the machine has too many open files', 'sysctl fs.file-nr'],
  ENOBUFS: ['the kernel has no memory for it', 'dmesg'],
  ENOMEM: ['the kernel has no memory for it', 'dmesg'],
}

function whyRefused({ inside, to }: TryFact): string {
  if (inside === undefined) return 'nobody listens there, or a rule on the way rejects them'
  const { listensAt, otherPorts } = inside
  const { ip, port } = splitHostPort(to)
  if (listensAt.length === 0) {
    const others = otherPorts.length === 0 ? 'nowhere else' : `on ${otherPorts.slice(0, MOST_PORTS).join(', ')}`
    return `nobody listens on port ${port} of its pod, but ${others}`
  }
  if (listensAt.some((address) => address === ip || isAnyAddress(address)))
    return 'its program listens, so a rule on the way rejects them'
  return `its program listens on port ${port} at ${listensAt.join(', ')} only`
}

const MOST_PORTS = 8

function isAnyAddress(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

/** Undefined: the pod's network does not say. */
function whySilent({ inside, result }: TryFact): string | undefined {
  if (inside === undefined || result !== 'no answer') return undefined
  if (inside.wayBack.kind === 'none') return `its pod has no route back: ${inside.wayBack.error}`
  if (inside.waiting > 0)
    return `connections wait there for the program to accept them (${inside.waiting}): it is stuck, or too slow`
  return undefined
}

function nextInside({ inside }: TryFact): string {
  const enter = inside?.enter === null || inside === undefined ? '' : `${inside.enter} `
  return inside?.wayBack.kind === 'none' ? `${enter}ip route` : `${enter}ss -ltn    # Recv-Q: connections that wait`
}

function showListeners({ to, pod, inside }: Pick<TryFact, 'to' | 'pod' | 'inside'>): string {
  if (typeof inside?.enter === 'string') return `${inside.enter} ss -ltn`
  const why = '# does the pod listen on targetPort?'
  if (pod !== '') return `kubectl exec ${pod} -- ss -ltn    ${why}`
  return `kubectl get pods --all-namespaces -o wide | grep -w ${splitHostPort(to).ip}    ${why}`
}

/** For UDP, only following a packet through the rules gives a result. */
function askEnds(facts: AboutEndpoints): Verdict {
  if (facts.ends === undefined)
    return unknown(
      facts.explanation?.question.protocol === 'UDP'
        ? 'UDP promises no answer; --send follows a packet'
        : 'only TCP can be tested',
    )
  const refused = facts.ends.find(({ answer }) => answer === 'refused')
  if (refused !== undefined) {
    const what = `the endpoint ${refused.to} refuses packets: nobody listens there, or a rule on the way rejects them`
    return finding('endpoint-refuses', what, showListeners({ to: refused.to, pod: '' }))
  }
  const lost = facts.ends.find(({ droppedBy, drops }) => droppedBy !== null || (drops ?? []).length > 0)
  if (lost !== undefined) return finding('endpoint-silent', endText(lost), nextOfEnd(lost, ''))
  const blind = facts.ends.find(({ drops }) => drops === null)
  if (blind !== undefined) return unknown(`what the kernel drops cannot be watched here: ${blind.dropsError}`)
  return fine('this machine dropped no packet to them')
}

function targetOf({ asked }: AboutEndpoints): string {
  return `${asked.service}${asked.port === '' ? '' : `:${asked.port}`}`
}

function askStaleFlows({ staleFlows }: ServiceExamination): Verdict {
  if (staleFlows === undefined) return undefined
  const [first] = staleFlows
  if (first === undefined) return fine()
  const { protocol, client, dialled, endpoint } = first
  const [address, port] = [splitHostPort(dialled).ip, dialled.replace(/^.*:/, '')]
  return finding(
    'stale-flow',
    `the connection tracker still sends ${protocol} from ${client} to ${endpoint}, which is no longer an endpoint${staleFlows.length === 1 ? '' : `, and ${staleFlows.length - 1} more flows`}`,
    `conntrack -D -p ${protocol.toLowerCase()} --orig-dst ${address} --dport ${port}`,
  )
}

function askService(facts: AboutEndpoints & Pick<ServiceExamination, 'machine'>): Verdict {
  const { serviceTry, serviceEnd, machine, explanation } = facts
  if (explanation === undefined || explanation.outcome !== 'to') return undefined
  const client = explanation.question.from === 'the node itself' ? 'this node' : facts.asked.from
  if (serviceTry === undefined) {
    // Its packets were followed.
    if (facts.ends !== undefined) return undefined
    if (explanation.question.protocol !== 'TCP') return unknown('only TCP can be tested')
    return unknown('a connection can only be opened where the client is')
  }
  if (serviceTry.result === 'connected') return fine()
  const often = serviceTry.share === undefined ? '' : ` in ${serviceTry.share} attempts`
  const what = `${serviceTry.to} ${resultText(serviceTry)} from ${client}${often} (${serviceTry.error})${facts.foreign?.walls.length ? '' : ', although its endpoints answer'}`
  const [doubt] = facts.foreign?.doubts ?? []
  if (serviceEnd !== undefined)
    return endedIn(
      finding('service-silent', `${what}: ${endText(serviceEnd)}`, nextOfEnd(serviceEnd, '')),
      serviceEnd,
      doubt,
    )
  if (doubt !== undefined) return finding('service-silent', `${what}; and ${doubt.what}`, doubt.next)
  const detour = facts.ways?.find((each) => each.ofClient?.way.kind === 'link')?.ofClient
  if (detour?.way.kind === 'link') {
    const { way, packets, shown } = detour
    const via = way.via === undefined ? '' : ` by way of ${formatIp(way.via)}`
    return finding(
      'service-silent',
      `${what}; and ${packets} leave by ${way.link}${via}, which packets of this node do not`,
      shown,
    )
  }
  const rp = machine.strictRpFilter.length === 0 ? '' : `; rp_filter is strict on ${machine.strictRpFilter.join(', ')}`
  return finding('service-silent', `${what}${rp}`, explainCommand(facts, ' --send'))
}

/** Where the kernel does not say which rule it was, the one that may have been it is named. */
function endedIn(of: DoctorFinding, { droppedBy, drops }: EndFact, doubt: ForeignDoubt | undefined): DoctorFinding {
  const isNameless =
    droppedBy === null && drops?.some(({ reason, rule }) => reason === 'NETFILTER_DROP' && rule === null)
  return isNameless === true && doubt !== undefined
    ? { ...of, what: `${of.what}; and ${doubt.what}`, next: doubt.next }
    : of
}

export function askDns({ dns, asked }: ServiceExamination): Verdict {
  switch (dns.kind) {
    case 'not asked':
      return undefined
    case 'answers':
      return fine(`${dns.name} is ${dns.address}`)
    case 'wrong':
      return finding(
        'dns-wrong',
        `the name server ${dns.server} answers ${dns.answer} for ${dns.name}`,
        `dig @${dns.server} ${dns.name}`,
      )
    case 'silent':
      return finding(
        'dns-silent',
        `the name server ${dns.server} does not answer (${dns.error}): names such as ${dns.name} do not resolve`,
        asked.service === 'kube-system/kube-dns'
          ? 'kubectl -n kube-system get pods -l k8s-app=kube-dns -o wide'
          : 'kube-proxy doctor kube-system/kube-dns',
      )
  }
}

function resultText({ result }: TryFact): string {
  return result === 'refused'
    ? 'refuses connections'
    : result === 'unreachable' || result === 'not possible'
      ? 'cannot be reached'
      : 'does not answer'
}
