// What the API server checks and a hostile or broken one might not.

import type { Protocol } from '../kube/types.ts'

const PROTOCOLS: ReadonlySet<string> = new Set<Protocol>(['TCP', 'UDP', 'SCTP'])

export function isPortNumber(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65535
}

export function isProtocol(protocol: string): protocol is Protocol {
  return PROTOCOLS.has(protocol)
}

/** Whether a namespace or name can stand in `namespace/name:port` and be told apart again. */
export function isObjectName(name: string): boolean {
  return name !== '' && !/[/:\s]/.test(name)
}

const LONGEST_QUOTE = 80

/** A value from an object, for a message: on one line and not too long, whatever somebody wrote there. */
export function quote(text: string): string {
  return JSON.stringify(text.length <= LONGEST_QUOTE ? text : `${text.slice(0, LONGEST_QUOTE)}...`)
}
