import type { Protocol } from '../types.ts'

/** The protocol of a port: TCP when it says none, undefined when it is one that nobody can proxy. */
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
