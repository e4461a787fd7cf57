import type { BackendList } from '../../src/model/backend-list.ts'
import type { Frontend, Policy, ServicePortView } from '../../src/model/types.ts'

/** The lists of a view that a test writes by hand: those that its frontends use. */
export function listsIn(frontends: readonly Frontend[]): ServicePortView['lists'] {
  const lists: Partial<Record<Policy, BackendList>> = {}
  for (const { fromPods, fromNode, fromOthers } of frontends) {
    for (const { verdict } of [fromPods, fromNode, fromOthers]) {
      if (verdict.kind === 'to') lists[verdict.policy] = verdict.backends
    }
  }
  return lists
}
