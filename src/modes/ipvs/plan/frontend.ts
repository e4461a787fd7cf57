// What a frontend asks of IPVS, and what it asks of the rules around it.

import type { Frontend, Verdict } from '../../../model/types.ts'

/** Whom the frontend's virtual server sends connections to: everybody's list, but for short circuits. */
export function servedVerdict(frontend: Frontend): Verdict {
  return frontend.fromOthers.verdict
}

/**
 * The list that pods and the node are sent to around IPVS; undefined when it is that of the virtual server, too.
 */
export function shortCircuitVerdict(frontend: Frontend): (Verdict & { kind: 'to' }) | undefined {
  const inside = frontend.fromNode.verdict
  const outside = servedVerdict(frontend)
  if (!frontend.isSplit || inside.kind !== 'to') return undefined
  return outside.kind === 'to' && outside.backends === inside.backends ? undefined : inside
}
