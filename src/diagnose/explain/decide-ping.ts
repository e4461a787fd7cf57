// The decision about a ping. No endpoint gets it: the node answers, or nobody.

import { answersPing } from '../../model/ping.ts'
import type { Connection } from '../../model/follow.ts'
import type { DecidedBackend, Decision } from './decide.ts'
import type { Decided, Known } from './known.ts'

type PingDecision = Pick<Decision, 'outcome' | 'because' | 'backends'>

/** Undefined: what becomes of any packet that is for no frontend. */
export function decidePing(
  { mode }: Known,
  { node, index }: Decided,
  { destination }: Connection,
): PingDecision | undefined {
  const views = [...index.all()].filter(({ frontend }) => frontend.address === destination)
  const [first] = views
  if (first === undefined) return undefined
  if (mode.semantics.pings === 'by the kernel') {
    const because = `in mode ${mode.name}, ${destination} is an address of this node, which answers pings`
    return { outcome: 'untouched', because, backends: [] }
  }
  const served = views.find(({ frontend }) => answersPing(node, frontend))
  if (served === undefined) return undefined
  const answerer: DecidedBackend = {
    ip: node.nodeIp,
    port: 0,
    nodeName: node.nodeName,
    eligible: true,
    why: '',
    masquerade: false,
    masqueradeWhy: 'the node itself answers',
    weight: undefined,
    share: undefined,
  }
  const because = `--answer-ping, and ${served.view.name} has an endpoint`
  return { outcome: 'to', because, backends: [answerer] }
}
