// What the snapshot left out: the page always says so.

import { count } from '../../../lib/count.ts'
import type { Snapshot } from '../../protocol.ts'

/** '' where everything is shown. */
export function leftOutWords({ services, pods, backends }: Snapshot['leftOut']): string {
  const parts = [
    services > 0 && count(services, 'service'),
    pods > 0 && count(pods, 'pod'),
    backends > 0 && `${count(backends, 'endpoint')} of the services that are`,
  ].filter((part) => part !== false)
  return parts.length === 0 ? '' : `Not shown, for there are too many: ${parts.join(', ')}.`
}
