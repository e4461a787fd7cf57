// How one service port looks: a chain for each way in and each list of endpoints, a chain for each endpoint, and rules in the
// common chains that lead there or say no. Chains, order and comments are kube-proxy's.

import { type Family, formatCidr, joinHostPort } from '../../../lib/ip.ts'
import { answersPing } from '../../../model/ping.ts'
import type { Frontend, NodeView, Policy, ServicePortView, Verdict } from '../../../model/types.ts'
import { formatRule } from '../../../iptables/format.ts'
import type { Fragment, OwnChain, PlacedRule } from '../../../iptables/fragment.ts'
import type { Match, Rule, RuleText, TableName, Target } from '../../../iptables/types.ts'
import { matchLocal, matchNotLocal } from './detector.ts'
import { DEFAULT_WEIGHT } from '../../../model/weights.ts'
import { CHAINS, COUNTERS, limitListName, ServiceNames } from './names.ts'
import { type IptablesSettings, opensLocalhost } from './settings.ts'

export interface ServiceContext {
  readonly node: NodeView
  readonly settings: IptablesSettings
  /** Where there are more than 1000 endpoints, rules about endpoints have no comments: they would be almost half of the text. */
  readonly cluster: 'large' | 'small'
}

export function planFragment(context: ServiceContext, port: ServicePortView): Fragment {
  return new FragmentPlan(context, port).fragment()
}

/** An endpoint and the chain that leads to it. */
interface EndpointChain {
  readonly ip: string
  /** `ip:port` */
  readonly text: string
  readonly chain: string
}

class FragmentPlan {
  readonly #context: ServiceContext
  readonly #node: NodeView
  readonly #port: ServicePortView
  readonly #names: ServiceNames
  readonly #protocol: string
  /** By `ip:port`. */
  readonly #endpoints = new Map<string, EndpointChain>()
  readonly #chains: OwnChain[] = []
  readonly #rules: PlacedRule[] = []

  constructor(context: ServiceContext, port: ServicePortView) {
    this.#context = context
    this.#node = context.node
    this.#port = port
    this.#names = new ServiceNames(port)
    this.#protocol = port.protocol.toLowerCase()
    for (const backend of port.backends) {
      const { ip } = backend
      const text = joinHostPort(ip, backend.port)
      this.#endpoints.set(text, { ip, text, chain: this.#names.endpoint(text) })
    }
  }

  fragment(): Fragment {
    const { frontends, healthCheckNodePort } = this.#port
    for (const frontend of frontends) this.#placeFrontend(frontend)
    if (healthCheckNodePort !== undefined) this.#placeHealthCheck(healthCheckNodePort)
    const external = frontends.find(({ kind }) => kind !== 'clusterIP')
    if (external !== undefined && isServed(external)) this.#planExternal(external)
    const guarded = frontends.find((frontend) => frontend.allowedSources !== undefined && isServed(frontend))
    if (guarded !== undefined) this.#planFirewall(guarded)
    this.#planLimits()
    this.#planList('Cluster', this.#names.cluster)
    this.#planList('Local', this.#names.local)
    this.#planEndpoints()
    return { owner: this.#port.name, chains: this.#chains, rules: this.#rules }
  }

  /** The rules that catch a frontend. */
  #placeFrontend(frontend: Frontend): void {
    const { kind } = frontend
    const { label, firewall } = this.#names
    const target = isServed(frontend) ? this.#entryOf(frontend) : undefined
    if (target !== undefined) {
      if (kind === 'nodePort') this.#placeNodePort(frontend, target)
      else this.#place('nat', CHAINS.services, this.#towards(frontend, `${label} ${SAYS[kind]}`, jumpTo(target)))
    }
    const { verdict } = frontend.fromOthers
    if (target !== undefined && frontend.limits !== undefined && verdict.kind !== 'leave') this.#placeRefusal(frontend)
    if (target === firewall) {
      const says = `${label} traffic not accepted by ${firewall}`
      if (verdict.kind === 'leave') this.#placeAllowed(frontend)
      this.#place('filter', CHAINS.proxyFirewall, this.#towards(frontend, says, { kind: 'drop' }))
    }
    if (answersPing(this.#node, frontend)) this.#placePing(frontend)
    if (verdict.kind === 'to' || verdict.kind === 'leave') return
    const chain = kind === 'clusterIP' ? CHAINS.services : CHAINS.externalServices
    const refusal: Target = verdict.kind === 'drop' ? { kind: 'drop' } : { kind: 'reject', family: this.#node.family }
    this.#place('filter', chain, this.#towards(frontend, `${label} ${verdict.reason}`, refusal))
  }

  /** Sources that may pass although nothing has translated their packets. */
  #placeAllowed(frontend: Frontend): void {
    const rule = this.#towards(frontend, `${this.#names.label} left alone`, { kind: 'return' })
    for (const source of frontend.allowedSources ?? []) {
      this.#place('filter', CHAINS.proxyFirewall, { ...rule, source: { network: formatCidr(source) } })
    }
  }

  /** What is over a limit is not translated. The node's own packets to external addresses pass another chain than those from outside. */
  #placeRefusal(frontend: Frontend): void {
    const { family } = this.#node
    const says = `${this.#names.label} over its limits`
    const refused = { kind: 'reject', family, ...(this.#protocol === 'tcp' ? { with: 'reset' as const } : {}) } as const
    const target: Target = frontend.limits?.over === 'drop' ? { kind: 'drop' } : refused
    const rule = this.#towards(frontend, says, target)
    this.#place('filter', CHAINS.services, rule)
    if (frontend.kind !== 'clusterIP') this.#place('filter', CHAINS.externalServices, rule)
  }

  #placeNodePort(frontend: Frontend, target: string): void {
    const { label } = this.#names
    const { node, settings } = this.#context
    const counter = COUNTERS.localhostNodePorts
    if (opensLocalhost(node, settings) && settings.counters.has(counter)) {
      const matches: Match[] = [comment(label), ...this.#ports(frontend.port), { kind: 'count', counter }]
      const destination = { network: '127.0.0.0/8' }
      const rule: Rule = { protocol: this.#protocol, destination, matches, target: jumpTo(target) }
      this.#place('nat', CHAINS.nodePorts, rule)
    }
    const matches: Match[] = [comment(label), ...this.#ports(frontend.port)]
    this.#place('nat', CHAINS.nodePorts, { protocol: this.#protocol, matches, target: jumpTo(target) })
  }

  /** The node answers as itself. Each port of a service says so, with its own name. */
  #placePing({ address }: Frontend): void {
    const { family, nodeIp } = this.#node
    this.#place('nat', CHAINS.ping, {
      destination: { network: `${address}/${family === 4 ? 32 : 128}` },
      matches: [comment(`${this.#names.label} answers pings`)],
      target: { kind: 'dnat', to: nodeIp },
    })
  }

  /** The node answers there itself, whatever the rest of the firewall says. */
  #placeHealthCheck(port: number): void {
    const matches: Match[] = [
      comment(`${this.#names.label} health check node port`),
      { kind: 'ports', protocol: 'tcp', destination: port },
    ]
    this.#place('filter', CHAINS.nodePorts, { protocol: 'tcp', matches, target: { kind: 'accept' } })
  }

  #entryOf(frontend: Frontend): string {
    if (frontend.kind !== 'clusterIP') {
      return frontend.allowedSources === undefined ? this.#names.external : this.#names.firewall
    }
    return this.#listOf(frontend.fromOthers.verdict)
  }

  #listOf(verdict: Verdict): string {
    return verdict.kind === 'to' && verdict.policy === 'Local' ? this.#names.local : this.#names.cluster
  }

  /** KUBE-EXT: which sources are masqueraded and which list each takes, whatever the external address. */
  #planExternal({ fromNode, fromOthers, isSplit, limits }: Frontend): void {
    const { label, external } = this.#names
    const rules: RuleText[] = []
    const add = (says: string, target: Target, more: Partial<Rule> = {}) =>
      rules.push(formatRule({ ...more, matches: [comment(says), ...(more.matches ?? [])], target }))
    const masquerade = jumpTo(CHAINS.markMasquerade)
    if (limits !== undefined) add(`limits of ${label}`, jumpTo(this.#names.limits))
    if (!isSplit) {
      add(`masquerade traffic for ${label} external destinations`, masquerade)
    } else {
      const local = matchLocal(this.#node.localDetector)
      const cluster = jumpTo(this.#listOf(fromNode.verdict))
      if (local !== undefined) {
        add(`pod traffic for ${label} external destinations`, cluster, local)
      }
      const fromThisNode = { matches: [{ kind: 'isLocal', side: 'src' }] } as const
      add(`masquerade LOCAL traffic for ${label} external destinations`, masquerade, fromThisNode)
      add(`route LOCAL traffic for ${label} external destinations`, cluster, fromThisNode)
    }
    if (fromOthers.verdict.kind === 'to') {
      rules.push(formatRule({ matches: [], target: jumpTo(this.#listOf(fromOthers.verdict)) }))
    }
    this.#chains.push({ name: external, rules })
  }

  /** KUBE-FW: which sources may use the load balancer's addresses. */
  #planFirewall({ allowedSources }: Frontend): void {
    const { label, external, firewall } = this.#names
    const says = comment(`${label} loadbalancer IP`)
    const rules = (allowedSources ?? []).map((source) =>
      formatRule({ source: { network: formatCidr(source) }, matches: [says], target: jumpTo(external) }),
    )
    const end = comment(`other traffic to ${label} will be dropped by ${CHAINS.proxyFirewall}`)
    this.#chains.push({ name: firewall, rules: [...rules, formatRule({ matches: [end], target: undefined })] })
  }

  /** KUBE-SVC, KUBE-SVL: one of the endpoints, the one that the client had before if there is affinity. */
  #planList(policy: Policy, name: string): void {
    const backends = this.#port.lists[policy]
    if (backends === undefined) return
    const rules: RuleText[] = [...this.#limitClusterIp(name), ...this.#masqueradeClusterIp(name)]
    // In the order of their texts, which is kube-proxy's: the probabilities follow from it.
    const chosen = backends
      .map(({ ip, port, weight = DEFAULT_WEIGHT }) => ({ ...this.#endpoints.get(joinHostPort(ip, port))!, weight }))
      .sort(byText)
      .map(({ text, chain, weight }) => ({
        chain,
        weight,
        says: this.#aboutEndpoint(`${this.#names.label} -> ${text}`),
      }))
    const seconds = this.#affinitySeconds()
    if (seconds !== undefined) {
      const { family } = this.#node
      for (const { chain, says } of chosen) {
        const matches: Match[] = [{ kind: 'recentCheck', list: chain, family, seconds }]
        rules.push(says + formatRule({ matches, target: jumpTo(chain) }))
      }
    }
    // Each gets its part of what those before it have left.
    let left = chosen.reduce((sum, { weight }) => sum + weight, 0)
    for (const { chain, says, weight } of chosen) {
      rules.push(says + jumpOutOf(left / weight) + chain)
      left -= weight
    }
    this.#chains.push({ name, rules })
  }

  /** Those over a limit leave the table as they came. The client's own limits come first: what one client has too much of does not count for the others. */
  #planLimits(): void {
    const limits = this.#port.frontends.find(isServed)?.limits
    if (limits === undefined) return
    const { open, openPerClient, perSecond, perSecondPerClient } = limits
    const rate = (number: number, of: 'all' | 'client') =>
      ({ kind: 'hashlimit', list: limitListName(this.#port, number, of), perSecond: number, of }) as const
    const matches: Match[] = [
      ...(perSecondPerClient === undefined ? [] : [rate(perSecondPerClient, 'client')]),
      ...(openPerClient === undefined ? [] : [connlimit(openPerClient, this.#node.family)]),
      ...(perSecond === undefined ? [] : [rate(perSecond, 'all')]),
      ...(open === undefined ? [] : [connlimit(open, 'all')]),
    ]
    const rules = matches.map((match) => formatRule({ matches: [match], target: { kind: 'accept' } }))
    this.#chains.push({ name: this.#names.limits, rules })
  }

  #limitClusterIp(list: string): RuleText[] {
    const frontend = this.#port.frontends.find(({ kind }) => kind === 'clusterIP')
    if (frontend?.limits === undefined || !isServed(frontend) || this.#entryOf(frontend) !== list) return []
    return [formatRule(this.#towards(frontend, `limits of ${this.#names.label}`, jumpTo(this.#names.limits)))]
  }

  /** A client from outside the cluster that comes to a cluster IP is masqueraded, for the endpoint may be on another node. */
  #masqueradeClusterIp(list: string): RuleText[] {
    const frontend = this.#port.frontends.find(({ kind }) => kind === 'clusterIP')
    if (frontend === undefined || !isServed(frontend) || this.#entryOf(frontend) !== list) return []
    const says = `${this.#names.label} ${SAYS.clusterIP}`
    const rule = this.#towards(frontend, says, jumpTo(CHAINS.markMasquerade))
    if (frontend.fromPods.masquerade) return [formatRule(rule)]
    if (!frontend.fromOthers.masquerade) return []
    return [formatRule({ ...rule, ...matchNotLocal(this.#node.localDetector) })]
  }

  /** KUBE-SEP. There are many, so what they have in common is put into words once. */
  #planEndpoints(): void {
    const { family } = this.#node
    const bits = family === 4 ? 32 : 128
    const says = this.#aboutEndpoint(this.#names.label)
    const masquerade = says + formatRule({ matches: [], target: jumpTo(CHAINS.markMasquerade) })
    const protocol = formatRule({ protocol: this.#protocol, matches: [], target: undefined })
    const translate = formatRule({ matches: this.#ports(), target: { kind: 'dnat', to: '' } })
    const sticks = this.#affinitySeconds() !== undefined
    for (const { ip, text, chain } of this.#endpoints.values()) {
      const remember = sticks
        ? `${formatRule({ matches: [{ kind: 'recentSet', list: chain, family }], target: undefined })} `
        : ''
      this.#chains.push({
        name: chain,
        rules: [
          // A pod that reaches itself through the service would answer itself without us.
          `-s ${ip}/${bits} ${masquerade}`,
          `${protocol} ${says}${remember}${translate}${text}`,
        ],
      })
    }
  }

  #affinitySeconds(): number | undefined {
    return this.#port.frontends[0]?.affinitySeconds
  }

  /** The comment of a rule about an endpoint, and a space. */
  #aboutEndpoint(text: string): string {
    if (this.#context.cluster === 'large') return ''
    return `${formatRule({ matches: [comment(text)], target: undefined })} `
  }

  /** A rule about packets to a frontend. */
  #towards({ address, port }: Frontend, says: string, target: Target): Rule {
    const protocol = this.#protocol
    if (address === undefined) {
      return {
        protocol,
        matches: [comment(says), { kind: 'isLocal', side: 'dst' }, ...this.#ports(port)],
        target,
      }
    }
    const destination = { network: `${address}/${this.#node.family === 4 ? 32 : 128}` }
    return { destination, protocol, matches: [comment(says), ...this.#ports(port)], target }
  }

  #ports(destination?: number): [Match] {
    const { protocol } = { protocol: this.#protocol }
    return [destination === undefined ? { kind: 'ports', protocol } : { kind: 'ports', protocol, destination }]
  }

  #place(table: TableName, chain: string, rule: Rule): void {
    this.#rules.push({ table, chain, rule: formatRule(rule) })
  }
}

const SAYS = {
  clusterIP: 'cluster IP',
  externalIP: 'external IP',
  loadBalancerIP: 'loadbalancer IP',
} as const

/** Whether any source is sent to an endpoint. */
function isServed({ fromPods, fromNode, fromOthers }: Frontend): boolean {
  return [fromPods, fromNode, fromOthers].some(({ verdict }) => verdict.kind === 'to')
}

function byText(a: EndpointChain, b: EndpointChain): number {
  return a.text < b.text ? -1 : 1
}

const jumps: string[] = []

/** The end of a rule that takes one packet in `outOf` to a chain, without the name of the chain. */
function jumpOutOf(outOf: number): string {
  const known = jumps[outOf]
  if (known !== undefined) return known
  const matches: Match[] = outOf === 1 ? [] : [{ kind: 'random', outOf }]
  const jump = formatRule({ matches, target: jumpTo('') })
  // Of weights there may be any number.
  if (Number.isInteger(outOf)) jumps[outOf] = jump
  return jump
}

function connlimit(most: number, of: 'all' | Family): Match {
  return { kind: 'connlimit', most, of }
}

function jumpTo(chain: string): Target {
  return { kind: 'jump', chain }
}

function comment(text: string): Match {
  return { kind: 'comment', text }
}
