// Questions about the network: routes, packet sizes, whether endpoints and the service answer, and old flows.

import type { EndFact, ServiceExamination, TryFact, WayFact } from './facts.ts'
import { explainCommand } from './ask-decision.ts'
import { dropText } from '../explain/format-text.ts'
import { fine, finding, unknown, type DoctorQuestion, type Verdict } from './verdict.ts'

export const NETWORK_QUESTIONS: readonly DoctorQuestion<ServiceExamination>[] = [
  { text: 'is there a route to the endpoints', ask: askRoute },
  { text: 'is there a route back to the client', ask: askWayBack },
  { text: 'do packets of the pods fit through the links', ask: askSize },
  { text: 'does rp_filter accept the answers', ask: askRpFilter },
  { text: 'does session affinity lead to an endpoint that answers', ask: askAffinity },
  { text: 'do the endpoints answer', ask: askAnswer },
  { text: 'do old flows lead to endpoints that exist', ask: askStaleFlows },
  { text: 'does the Service answer this node', ask: askService },
]

function askRoute({ ways, tries }: ServiceExamination): Verdict {
  if (ways === undefined) return undefined
  const lost = tries.find(({ result }) => result === 'no route')
  const without = ways.find(({ way }) => way.kind === 'none')
  if (lost === undefined && without === undefined) return fine(linksOf(ways))
  const to = lost?.to ?? without!.to
  const why = without?.way.kind === 'none' ? without.way.error : lost!.error
  return finding('no-route', `this machine has no route to the endpoint ${to}: ${why}`, `ip route get ${hostOf(to)}`)
}

function linksOf(ways: readonly WayFact[]): string {
  return [...new Set(ways.flatMap(({ way }) => (way.kind === 'link' ? [way.link] : [])))].join(', ')
}

function askWayBack({ wayBack }: ServiceExamination): Verdict {
  if (wayBack === undefined) return undefined
  const { to, way } = wayBack
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
    `sysctl -w net.ipv4.conf.${link}.rp_filter=2    # and compare: ip route get ${hostOf(lost.to)}`,
  )
}

function askAffinity(facts: ServiceExamination): Verdict {
  const { explanation, tries, asked } = facts
  const backend = explanation?.affinity?.backend
  if (backend === undefined || backend === null) return undefined
  const tried = tries.find(({ to }) => to === backend)
  if (tried === undefined || tried.result === 'not tried') return undefined
  if (tried.result === 'connected') return fine(backend)
  const left = explanation?.affinity?.secondsLeft
  return finding(
    'affinity-pins',
    `session affinity sends ${asked.from === 'node' ? 'this node' : asked.from} to ${backend}, which ${resultText(tried)}${left === null || left === undefined ? '' : `, for another ${left} s`}`,
    explainCommand(facts),
  )
}

type AboutEndpoints = Pick<ServiceExamination, 'asked' | 'tries' | 'ends' | 'foreign' | 'explanation'>

/** Of the service, or of one of its addresses. */
export function askAnswer(facts: AboutEndpoints): Verdict {
  const { tries, foreign, explanation } = facts
  const asked = tries.filter(({ result }) => result !== 'not tried')
  if (asked.length === 0) return explanation === undefined ? undefined : askEnds(facts)
  const failed = asked.filter(({ result }) => result !== 'connected')
  const [first] = failed
  const eligible = explanation?.backends.filter((each) => each.eligible).length ?? asked.length
  if (first === undefined) {
    return fine(asked.length === eligible ? `${eligible} of ${eligible}` : `${asked.length} tested, of ${eligible}`)
  }
  const share = asked.length === 1 ? 'the endpoint' : `${failed.length} of ${asked.length} endpoints`
  if (first.result === 'refused') {
    return finding(
      'endpoint-refuses',
      `${share} ${failed.length === 1 || asked.length === 1 ? 'refuses' : 'refuse'} connections: ${failed.map(({ to }) => to).join(', ')}`,
      `kubectl exec ${first.pod || 'POD'} -- ss -ltn    # does the pod listen on targetPort?`,
    )
  }
  const ended = facts.ends?.find(({ to }) => to === first.to)
  if (ended !== undefined) {
    const what = `${share} ${failed.length === 1 || asked.length === 1 ? 'does' : 'do'} not answer: ${endText(ended)}`
    return finding('endpoint-silent', what, nextOf(ended, facts))
  }
  const [doubt] = foreign?.doubts ?? []
  const engines = foreign?.policyEngines ?? []
  const policy = engines.length === 0 ? '' : `; network policies are enforced here (${engines.join(', ')})`
  return finding(
    'endpoint-silent',
    `${share} ${failed.length === 1 || asked.length === 1 ? 'does' : 'do'} not answer: packets to ${first.to} or the answers are lost, or the pod drops them${doubt === undefined ? policy : `; and ${doubt.what}`}`,
    doubt?.next ??
      (engines.length > 0
        ? 'kubectl get networkpolicies --all-namespaces'
        : `kube-proxy doctor ${targetOf(facts)} --send`),
  )
}

/** For UDP, only following a packet through the rules gives a result. */
function askEnds(facts: AboutEndpoints): Verdict {
  if (facts.ends === undefined)
    return unknown(
      facts.explanation?.question.protocol === 'UDP'
        ? 'UDP promises no answer; --send follows a packet'
        : 'only TCP can be tested',
    )
  const lost = facts.ends.find(({ droppedBy, drops }) => droppedBy !== null || (drops ?? []).length > 0)
  if (lost !== undefined) return finding('endpoint-silent', endText(lost), nextOf(lost, facts))
  const blind = facts.ends.find(({ drops }) => drops === null)
  if (blind !== undefined) return unknown(`what the kernel drops cannot be watched here: ${blind.dropsError}`)
  return fine('this machine dropped no packet to them')
}

function endText({ to, droppedBy, drops, dropsError }: EndFact): string {
  if (droppedBy !== null)
    return `${droppedBy.replace(/: .*/, '')} drops a packet to ${to}${droppedBy.replace(/.*?: /, ': ')}`
  if (drops === null)
    return `where a packet to ${to} ends is not known, because drops cannot be watched here: ${dropsError}`
  const [drop] = drops
  if (drop !== undefined) return `the packet ${drop.packet} is dropped ${dropText(drop)}`
  return `this machine dropped no packet to ${to}: it is lost on another machine, or the pod keeps silent`
}

/** What shows the rule that dropped it, or the pod. */
function nextOf({ to, droppedBy, drops }: EndFact, facts: AboutEndpoints): string {
  const [, table, chain] = /^table (\S+ \S+), chain (\S+): /.exec(droppedBy ?? '') ?? []
  if (table !== undefined) return `nft -a list chain ${table} ${chain}`
  const [drop] = drops ?? []
  const inside = drop?.enter === null || drop === undefined ? '' : `${drop.enter} `
  const [, itsTable, itsChain] = /^table (\S+ \S+), chain (\S+): /.exec(drop?.rule ?? '') ?? []
  if (itsTable !== undefined) return `${inside}nft -a list chain ${itsTable} ${itsChain}`
  if (drop?.reason === 'NETFILTER_DROP') return `${inside}nft list ruleset    # and: ${inside}iptables-legacy-save`
  if (drop?.reason === 'OTHERHOST' || drop?.reason === 'NEIGH_FAILED') return 'ip neigh show'
  const { pod } = facts.tries.find((each) => each.to === to) ?? { pod: '' }
  return pod === '' ? `ip route get ${hostOf(to)}` : `kubectl exec ${pod} -- ss -ltn`
}

function targetOf({ asked }: AboutEndpoints): string {
  return `${asked.service}${asked.port === '' ? '' : `:${asked.port}`}`
}

function askStaleFlows({ staleFlows }: ServiceExamination): Verdict {
  if (staleFlows === undefined) return undefined
  const [first] = staleFlows
  if (first === undefined) return fine()
  const { protocol, client, dialled, endpoint } = first
  const [address, port] = [hostOf(dialled), dialled.replace(/^.*:/, '')]
  return finding(
    'stale-flow',
    `the connection tracker still sends ${protocol} from ${client} to ${endpoint}, which is no longer an endpoint${staleFlows.length === 1 ? '' : `, and ${staleFlows.length - 1} more flows`}`,
    `conntrack -D -p ${protocol.toLowerCase()} --orig-dst ${address} --dport ${port}`,
  )
}

function askService(facts: ServiceExamination): Verdict {
  const { serviceTry, machine, explanation } = facts
  // Connections of other clients cannot be tested from here.
  if (serviceTry === undefined) {
    if (explanation?.question.from !== 'the node itself' || facts.ends !== undefined) return undefined
    return unknown(explanation.question.protocol === 'TCP' ? 'not tested' : 'only TCP can be tested')
  }
  if (serviceTry.result === 'connected') return fine()
  const rp = machine.strictRpFilter.length === 0 ? '' : `; rp_filter is strict on ${machine.strictRpFilter.join(', ')}`
  return finding(
    'service-silent',
    `${serviceTry.to} ${resultText(serviceTry)} from this node (${serviceTry.error}), although its endpoints answer${rp}`,
    explainCommand(facts, ' --send'),
  )
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
  return result === 'refused' ? 'refuses connections' : result === 'no route' ? 'cannot be reached' : 'does not answer'
}

export function hostOf(text: string): string {
  return text.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}
