// Which addresses of Services answer pings: `--answer-ping`. The node that a ping comes to answers it, not an endpoint, so that an
// answer says that a proxy on the way serves the Service.

import type { Frontend, NodeView } from './types.ts'

/** Not external IPs: whoever may write a Service could have this node answer for any address. */
export function answersPing({ answerPing }: NodeView, { kind, fromOthers }: Frontend): boolean {
  const isVip = kind === 'clusterIP' || kind === 'loadBalancerIP'
  return answerPing === true && isVip && fromOthers.verdict.kind === 'to'
}
