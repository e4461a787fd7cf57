// What a list of backends is served under.

import type { Policy, ServicePortView } from '../../model/types.ts'

export const LISTS: readonly Policy[] = ['Cluster', 'Local']

export function servedName({ name, protocol }: Pick<ServicePortView, 'name' | 'protocol'>, list: Policy): string {
  return list === 'Cluster' ? `${name}/${protocol}` : `${name}/${protocol} (Local)`
}
