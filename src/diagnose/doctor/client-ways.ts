// The ways of a client's own packets, which rules of policy routing (`ip rule`) may lead elsewhere than those of this node.

import { formatIp, ipBytes } from '../../lib/ip.ts'
import { findWays, type Traveller, type Way } from '../../links/find-ways.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import type { ClientWay } from './facts.ts'
import { markOf } from './packets.ts'

/** To each endpoint, in their order; undefined where they go as packets of this node do, or nothing is known. */
export function clientWays(
  known: Known,
  { question, backends }: Pick<Explanation, 'question' | 'backends'>,
  ways: readonly Way[],
): (ClientWay | undefined)[] {
  const traveller = travellerOf(question)
  return backends.map(({ address, masquerade }, i) => {
    const mark = masquerade ? markOf(known, question.mode, address.includes(':') ? 6 : 4) : undefined
    if (traveller === undefined || (traveller.link === undefined && mark === undefined)) return undefined
    const [way] = findWays([ipBytes(address)], { ...traveller, mark })
    return way === undefined || isSame(way, ways[i]!) ? undefined : describe(way, address, { ...traveller, mark })
  })
}

/** Of the answers of an endpoint. */
export function answerWay(client: string, endpoint: string, way: Way | undefined): ClientWay | undefined {
  const [own] = findWays([ipBytes(endpoint)])
  if (own?.kind !== 'link' || way === undefined) return undefined
  const traveller = { from: ipBytes(endpoint), link: own.link }
  const [found] = findWays([ipBytes(client)], traveller)
  return found === undefined || isSame(found, way) ? undefined : describe(found, client, traveller)
}

/** Undefined: another program carries its connections, or it is not known how its packets come in. */
function travellerOf({ from, source, mode }: Explanation['question']): Traveller | undefined {
  if (mode === 'userspace' || mode === 'ipvs') return undefined
  if (from === 'the node itself') return {}
  const [way] = findWays([ipBytes(source)])
  return way?.kind === 'link' ? { from: ipBytes(source), link: way.link } : undefined
}

function describe(way: Way, to: string, { from, link, mark }: Traveller): ClientWay {
  const whose = from === undefined ? 'packets of this node to the Service' : `packets of ${formatIp(from)}`
  const marked = mark === undefined ? '' : ` mark 0x${mark.toString(16)}`
  const incoming = from === undefined ? '' : ` from ${formatIp(from)}${link === undefined ? '' : ` iif ${link}`}`
  return {
    packets: link === undefined ? whose : `${whose} that come in by ${link}`,
    way,
    shown: `ip route get ${to}${incoming}${marked}    # and: ip rule`,
  }
}

function isSame(a: Way, b: Way): boolean {
  if (a.kind === 'link' && b.kind === 'link') return a.link === b.link && a.via === b.via
  return a.kind === b.kind
}
