// Makes the lines of the report.

import type { Service } from '../../kube/types.ts'
import { type Change, type ChangeCode, changeKinds } from './change-kinds.ts'

interface Text {
  readonly message: string
  readonly todo?: string
}

/** About the node itself, or a setting. */
export function ofNode(code: ChangeCode, { message, todo }: Text): Change {
  return { code, effect: changeKinds[code].effect, message, todo, services: [] }
}

/** About the Services that it concerns; nothing where there are none. */
export function ofServices(code: ChangeCode, concerned: readonly Service[], text: Text): Change[] {
  return concerned.length === 0 ? [] : [{ ...ofNode(code, text), services: concerned.map(keyOf) }]
}

export function keyOf({ namespace, name }: Service): string {
  return `${namespace}/${name}`
}

/** The first few of a list that may be long. */
export function someOf(list: readonly string[]): string {
  const rest = list.length - MOST_NAMED
  return rest > 1 ? `${list.slice(0, MOST_NAMED).join(', ')} and ${rest} more` : list.join(', ')
}

const MOST_NAMED = 8

/** The addresses of a Service that are not of the cluster: external IPs, and those of load balancers that the node takes. */
export function outerAddresses({ externalIPs, ingress }: Service): string[] {
  return [
    ...new Set([...externalIPs, ...ingress.flatMap(({ ip, ipMode }) => (ipMode === 'VIP' && ip !== '' ? [ip] : []))]),
  ]
}
