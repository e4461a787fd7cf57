// Checks that the API server makes, and that a hostile or broken one might not.

import type { Protocol } from '../kube/types.ts'

const PROTOCOLS: ReadonlySet<string> = new Set<Protocol>(['TCP', 'UDP', 'SCTP'])

export function isPortNumber(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65535
}

export function isProtocol(protocol: string): protocol is Protocol {
  return PROTOCOLS.has(protocol)
}

/**
 * Whether a port can have this name. The API allows DNS labels (RFC 1123) for Services, Endpoints and slices alike; names
 * of ports end up in rules and in the names of chains, so nothing else may. '' is no name.
 */
export function isPortName(name: string): boolean {
  return name === '' || isLabel(name)
}

/** Whether this can be the name of a Service, or of a namespace: both are DNS labels, so that they can stand in a DNS name. */
export function isLabel(name: string): boolean {
  return name.length <= LONGEST_LABEL && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)
}

const LONGEST_LABEL = 63

/** Whether this can be the name of a Node: what DNS allows. */
export function isObjectName(name: string): boolean {
  return name.length <= LONGEST_NAME && /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(name)
}

const LONGEST_NAME = 253

const LONGEST_QUOTE = 80

/** A value of an object for a message: on one line, and not too long. */
export function quote(text: string): string {
  return JSON.stringify(text.length <= LONGEST_QUOTE ? text : `${text.slice(0, LONGEST_QUOTE)}...`)
}
