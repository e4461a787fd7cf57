// What the snapshot left out: the page always says so.

import type { Snapshot } from '../../protocol.ts'

/** '' where everything is shown. */
export function leftOutWords({ services, pods, backends }: Snapshot['leftOut']): string {
  const parts = [
    count(services, 'service'),
    count(pods, 'pod'),
    backends === 0 ? '' : `${count(backends, 'endpoint')} of the services that are`,
  ].filter((part) => part !== '')
  return parts.length === 0 ? '' : `Not shown, for there are too many: ${parts.join(', ')}.`
}

function count(number: number, what: string): string {
  return number === 0 ? '' : `${number} ${what}${number === 1 ? '' : 's'}`
}
