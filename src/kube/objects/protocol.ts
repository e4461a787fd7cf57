import type { Protocol } from '../types.ts'

/** The protocol of a port: TCP when it says none, undefined when no mode can proxy it. */
export function parseProtocol(text: string): Protocol | undefined {
  switch (text) {
    case 'TCP':
    case 'UDP':
    case 'SCTP':
      return text
    case '':
      return 'TCP'
    default:
      return undefined
  }
}
