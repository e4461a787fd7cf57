// What a frontend asks of IPVS, and what it asks of the rules around it.

import type { Frontend, Verdict } from '../../../model/types.ts'

/** The list that the frontend's virtual server chooses from: that of outside clients. Short circuits go around it. */
export function servedVerdict(frontend: Frontend): Verdict {
  return frontend.fromOthers.verdict
}

/** Its packets are to be routed on, so it must be no address of the node. */
export function isLeftAlone(frontend: Frontend): boolean {
  return servedVerdict(frontend).kind === 'leave'
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
