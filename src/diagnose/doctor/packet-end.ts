// How a packet ended that was followed, in a sentence, and the command that shows more.

import type { ExplainedDrop } from '../explain/explanation.ts'
import { dropText } from '../explain/format-text.ts'
import { splitHostPort } from '../../lib/ip.ts'
import type { EndFact } from './facts.ts'

export function endText({ to, droppedBy, drops, dropsError }: EndFact): string {
  if (droppedBy !== null)
    return `${droppedBy.replace(/: .*/, '')} drops a packet to ${to}${droppedBy.replace(/.*?: /, ': ')}`
  if (drops === null)
    return `where a packet to ${to} ends is not known, because drops cannot be watched here: ${dropsError}`
  const drop = mostTelling(drops)
  if (drop === undefined)
    return `this machine dropped no packet to ${to}: it is lost on another machine, or the pod keeps silent`
  if (drop.reason === 'OTHERHOST')
    return `the packet ${drop.packet} carries the MAC address of another machine than those that get it (OTHERHOST): an old neighbour entry, or its owner's link is down`
  return `the packet ${drop.packet} is dropped ${dropText(drop)}`
}

/** A switch sends frames for a MAC address that it does not know to everybody, who drop them. */
function mostTelling(drops: readonly ExplainedDrop[]): ExplainedDrop | undefined {
  return drops.find(({ reason }) => reason !== 'OTHERHOST') ?? drops[0]
}

/** Shows the rule that dropped it, or the pod: `-n NAMESPACE POD`, '' where it is not known. */
export function nextOfEnd({ to, droppedBy, drops }: EndFact, pod: string): string {
  const drop = mostTelling(drops ?? [])
  const inside = drop?.enter === null || drop === undefined ? '' : `${drop.enter} `
  for (const [rule, where] of [
    [droppedBy, ''],
    [drop?.rule, inside],
  ] as const) {
    const [, table, chain] = /^table (\S+ \S+), chain (\S+): /.exec(rule ?? '') ?? []
    if (table !== undefined) return `${where}nft -a list chain ${table} ${chain}`
  }
  switch (drop?.reason) {
    case 'NETFILTER_DROP':
      return `${inside}nft list ruleset    # and: ${inside}iptables-legacy-save`
    case 'OTHERHOST':
    case 'NEIGH_FAILED':
      return 'ip neigh show'
    case 'IP_INADDRERRORS':
      return `${inside}sysctl net.ipv4.ip_forward`
    case 'TC_EGRESS':
    case 'TC_INGRESS':
      return `${inside}tc filter show dev ${drop.link ?? 'LINK'} ${drop.reason === 'TC_EGRESS' ? 'egress' : 'ingress'}`
    case 'QDISC_DROP':
      return `${inside}tc -s qdisc show dev ${drop.link ?? 'LINK'}`
    case 'XDP':
      return `${inside}ip -d link show dev ${drop.link ?? 'LINK'}`
    case 'XFRM_POLICY':
      return `${inside}ip xfrm policy`
    case 'IP_RPFILTER':
      return `${inside}ip route get ${splitHostPort(drop.packet.replace(/ > .*/, '')).ip}    # and: ${inside}sysctl -a -r rp_filter`
    default:
      return pod === '' ? `${inside}ip route get ${splitHostPort(to).ip}` : `kubectl exec ${pod} -- ss -ltn`
  }
}
