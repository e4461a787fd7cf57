import type { Protocol } from '../types.ts'

/** TCP when the port names none; undefined when no mode can proxy it. */
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
