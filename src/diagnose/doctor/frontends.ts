// The addresses of a service that a client may dial, beside the one that was explained.

import { decidedOf } from '../explain/explain.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import { isOutside } from '../explain/question.ts'
import { joinHostPort } from '../../lib/ip.ts'
import type { Frontend, FrontendKind, NodeView } from '../../model/types.ts'

export interface FrontendToAsk {
  readonly kind: FrontendKind
  /** `its node port 172.30.0.11:30000/TCP` */
  readonly label: string
  /** For explain: `172.30.0.11:30000/TCP`; undefined: a node port that is open nowhere. */
  readonly target: string | undefined
}

export interface WhichFrontends {
  readonly service: string
  /** Only of the port with this name or number; '': of all. */
  readonly port: string
  readonly from: string
  readonly via: string | undefined
  /** The one that was explained already. */
  readonly explained: Explanation | undefined
}

const WORDS: Readonly<Record<FrontendKind, string>> = {
  clusterIP: 'cluster IP',
  loadBalancerIP: 'load-balancer IP',
  externalIP: 'external IP',
  nodePort: 'node port',
}

/** More are not asked: a service with a hundred ports has them all alike. */
const MOST_FRONTENDS = 24

export function otherFrontends(known: Known, { service, port, from, via, explained }: WhichFrontends): FrontendToAsk[] {
  const outside = isOutside(known, from)
  const all = ([4, 6] as const).flatMap((family) => {
    const decided = decidedOf(known, family)
    const node = known.nodes[family]
    if (decided === undefined || node === undefined) return []
    return [...decided.model.views()]
      .filter((view) => `${view.namespace}/${view.service}` === service)
      .filter((view) => port === '' || view.portName === port || servicePorts(known, service, port).has(view.name))
      .flatMap((view) => view.frontends.map((frontend) => toAsk(frontend, node)))
  })
  const isOf = ({ kind }: FrontendToAsk) => (via === undefined ? !(outside && kind === 'clusterIP') : kind === via)
  const first =
    explained &&
    `${joinHostPort(explained.question.destination, explained.question.port)}/${explained.question.protocol}`
  return all
    .filter((each) => isOf(each) && (each.target === undefined || each.target !== first))
    .slice(0, MOST_FRONTENDS)
}

/** The names of the service ports that have this number. */
function servicePorts(known: Known, service: string, port: string): Set<string> {
  const found = known.services.find(({ namespace, name }) => `${namespace}/${name}` === service)
  return new Set(
    (found?.ports ?? [])
      .filter((each) => String(each.port) === port)
      .map(({ name }) => (name === '' ? service : `${service}:${name}`)),
  )
}

function toAsk({ kind, address, port, protocol }: Frontend, { nodePortAddresses, nodeIp }: NodeView): FrontendToAsk {
  const open = nodePortAddresses.kind === 'only' ? nodePortAddresses.addresses[0] : nodeIp
  const ip = address ?? open
  const target = ip === undefined ? undefined : `${joinHostPort(ip, port)}/${protocol}`
  return { kind, target, label: `its ${WORDS[kind]} ${target ?? `${port}/${protocol}`}` }
}
