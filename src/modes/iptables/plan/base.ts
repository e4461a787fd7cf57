// What exists with no service at all. Chains, order and comments are kube-proxy's.

import type { NodeView } from '../../../model/types.ts'
import type { Base, BaseChain, PlacedRule } from '../../../iptables/fragment.ts'
import { formatRule } from '../../../iptables/format.ts'
import type { Match, Rule, RuleText, TableName, Target } from '../../../iptables/types.ts'
import { CHAINS, COUNTERS, isServiceChain } from './names.ts'
import { type IptablesSettings, opensLocalhost } from './settings.ts'

export function planBase(node: NodeView, settings: IptablesSettings): Base {
  return {
    chains: [...filterChains(node, settings), ...natChains(node, settings), ...canaries()],
    jumps: JUMPS,
    // Of kubelet, which may be newer or older than we are, or not there at all.
    sharedChains: [{ table: 'filter', name: CHAINS.kubeletFirewall }],
    sharedRules: opensLocalhost(node, settings) ? [BLOCK_MARTIANS] : [],
    // It is not there without the option.
    isServiceChain: (name) => isServiceChain(name) || name === CHAINS.ping,
  }
}

/** Only what makes route_localnet safe. Everything else stays as it is. */
export function planLocalnetGuard(): Base {
  return {
    chains: [],
    jumps: GUARD_JUMPS,
    sharedChains: [{ table: 'filter', name: CHAINS.kubeletFirewall }],
    sharedRules: [BLOCK_MARTIANS],
    isServiceChain: () => false,
  }
}

function filterChains(node: NodeView, settings: IptablesSettings): BaseChain[] {
  const chain = (name: string, rules: readonly RuleText[] = []) => entry('filter', name, { first: rules })
  return [
    chain(CHAINS.services),
    chain(CHAINS.externalServices),
    chain(CHAINS.forward, forwardRules(node, settings)),
    chain(CHAINS.nodePorts),
    chain(CHAINS.proxyFirewall),
  ]
}

function natChains(node: NodeView, settings: IptablesSettings): BaseChain[] {
  const { masqueradeMark: mark } = node
  return [
    entry('nat', CHAINS.services, { last: [...pingRules(node), ...nodePortRules(node, settings)] }),
    ...(node.answerPing === true ? [entry('nat', CHAINS.ping)] : []),
    entry('nat', CHAINS.nodePorts),
    entry('nat', CHAINS.postrouting, {
      first: [
        rule([{ kind: 'mark', value: mark, mask: mark, not: true }], { kind: 'return' }),
        // The mark goes, so that a packet that passes again is not masqueraded again.
        rule([], { kind: 'setMark', value: mark, mask: 0 }),
        rule([comment('kubernetes service traffic requiring SNAT')], {
          kind: 'masquerade',
          randomPorts: settings.masqueradePorts,
        }),
      ],
    }),
    {
      ...entry('nat', CHAINS.markMasquerade, { first: [rule([], { kind: 'setMark', value: mark, mask: mark })] }),
      stage: 'helper',
    },
  ]
}

/** They are created with everything else, so that they are gone when everything else is. */
function canaries(): BaseChain[] {
  return (['mangle', 'nat', 'filter'] as const).map((table) => entry(table, CHAINS.canary))
}

function forwardRules({ masqueradeMark: mark }: NodeView, settings: IptablesSettings): RuleText[] {
  const counter = COUNTERS.invalidDropped
  const counted: Match[] = settings.counters.has(counter) ? [{ kind: 'count', counter }] : []
  const dropInvalid = rule([{ kind: 'conntrack', states: ['INVALID'] }, ...counted], { kind: 'drop' })
  return [
    // Otherwise such a packet would pass untranslated, and make its receiver reset the connection (k8s issue 74839).
    ...(settings.invalidPackets === 'drop' ? [dropInvalid] : []),
    rule([comment('kubernetes forwarding rules'), { kind: 'mark', value: mark, mask: mark }], { kind: 'accept' }),
    rule([comment('kubernetes forwarding conntrack rule'), conntrack('RELATED', 'ESTABLISHED')], { kind: 'accept' }),
  ]
}

/** Behind the services: what is sent to an endpoint does not pass it. */
function pingRules({ family, answerPing }: NodeView): RuleText[] {
  if (answerPing !== true) return []
  const protocol = family === 4 ? 'icmp' : 'ipv6-icmp'
  return [
    rule(
      [comment('pings of service IPs'), { kind: 'isPing', family }],
      { kind: 'jump', chain: CHAINS.ping },
      { protocol },
    ),
  ]
}

/** The last rules of KUBE-SERVICES: what is for this node may be for a node port. */
function nodePortRules(node: NodeView, settings: IptablesSettings): RuleText[] {
  const { family, nodePortAddresses } = node
  const remark = comment('kubernetes service nodeports; NOTE: this must be the last rule in this chain')
  const target: Target = { kind: 'jump', chain: CHAINS.nodePorts }
  const withLocalhost = opensLocalhost(node, settings)
  if (nodePortAddresses.kind === 'all') {
    const loopback = family === 4 ? '127.0.0.0/8' : '::1/128'
    const isLocal: Match = { kind: 'isLocal', side: 'dst' }
    const outside: Partial<Rule> = withLocalhost ? {} : { destination: { network: loopback, not: true } }
    return [rule([remark, isLocal], target, outside)]
  }
  const loopback = withLocalhost ? (nodePortAddresses.loopback ?? []) : []
  return [...nodePortAddresses.addresses, ...loopback].map((address) =>
    rule([remark], target, { destination: { network: `${address}/${family === 4 ? 32 : 128}` } }),
  )
}

/** route_localnet lets any neighbour in the network reach services that listen on 127.0.0.1 only (k8s issue 90259). */
export const BLOCK_MARTIANS: PlacedRule = {
  table: 'filter',
  chain: CHAINS.kubeletFirewall,
  rule: rule(
    [
      comment('block incoming localnet connections'),
      { kind: 'conntrack', states: ['RELATED', 'ESTABLISHED', 'DNAT'], not: true },
    ],
    { kind: 'drop' },
    { source: { network: '127.0.0.0/8', not: true }, destination: { network: '127.0.0.0/8' } },
  ),
}

const GUARD_JUMPS: readonly PlacedRule[] = ['INPUT', 'OUTPUT'].map((chain) => ({
  table: 'filter',
  chain,
  rule: rule([], { kind: 'jump', chain: CHAINS.kubeletFirewall }),
}))

/** Each comes before those above it. */
const JUMPS: readonly PlacedRule[] = [
  jump('filter', 'INPUT', { to: CHAINS.externalServices, says: 'kubernetes externally-visible service portals' }),
  jump('filter', 'FORWARD', { to: CHAINS.externalServices, says: 'kubernetes externally-visible service portals' }),
  jump('filter', 'INPUT', { to: CHAINS.nodePorts, says: 'kubernetes health check service ports', all: true }),
  jump('filter', 'FORWARD', { to: CHAINS.services, says: 'kubernetes service portals' }),
  jump('filter', 'OUTPUT', { to: CHAINS.services, says: 'kubernetes service portals' }),
  jump('filter', 'FORWARD', { to: CHAINS.forward, says: 'kubernetes forwarding rules', all: true }),
  jump('filter', 'INPUT', { to: CHAINS.proxyFirewall, says: 'kubernetes load balancer firewall' }),
  jump('filter', 'OUTPUT', { to: CHAINS.proxyFirewall, says: 'kubernetes load balancer firewall' }),
  jump('filter', 'FORWARD', { to: CHAINS.proxyFirewall, says: 'kubernetes load balancer firewall' }),
  jump('nat', 'OUTPUT', { to: CHAINS.services, says: 'kubernetes service portals', all: true }),
  jump('nat', 'PREROUTING', { to: CHAINS.services, says: 'kubernetes service portals', all: true }),
  jump('nat', 'POSTROUTING', { to: CHAINS.postrouting, says: 'kubernetes postrouting rules', all: true }),
  ...GUARD_JUMPS,
]

/** `all`: for every packet, not only for the first one of a connection. */
function jump(
  table: TableName,
  chain: string,
  { to, says, all = false }: { to: string; says: string; all?: boolean },
): PlacedRule {
  const matches = [...(all ? [] : [conntrack('NEW')]), comment(says)]
  return { table, chain, rule: rule(matches, { kind: 'jump', chain: to }) }
}

function entry(table: TableName, name: string, rules: Partial<Pick<BaseChain, 'first' | 'last'>> = {}): BaseChain {
  return { table, name, stage: 'entry', first: [], last: [], ...rules }
}

function rule(matches: readonly Match[], target: Target, more: Partial<Rule> = {}): RuleText {
  return formatRule({ ...more, matches, target })
}

function comment(text: string): Match {
  return { kind: 'comment', text }
}

function conntrack(...states: readonly string[]): Match {
  return { kind: 'conntrack', states }
}
