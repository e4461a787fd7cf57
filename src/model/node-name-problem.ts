// A proxy with a wrong node name believes that every endpoint is elsewhere: policy Local drops everything, without an error
// anywhere. This finds the mistake.

import type { SliceRecord } from './slice-record.ts'

/** Where the endpoints of the cluster say that they run. */
export interface EndpointPlaces {
  /** How many endpoints name a node at all. */
  readonly withNodeName: number
  /** How many of them name ours. */
  readonly onThisNode: number
  /** A few of the names: similar ones first, then in order. */
  readonly examples: readonly string[]
}

const EXAMPLES = 3

/** Reads all endpoints: call it once and not at each change. */
export function endpointPlaces(records: Iterable<SliceRecord>, nodeName: string): EndpointPlaces {
  let withNodeName = 0
  let onThisNode = 0
  const names = new Set<string>()
  for (const record of records) {
    for (const name of record.nodeNames) {
      if (name === '') continue
      withNodeName++
      if (name === nodeName) onThisNode++
      names.add(name)
    }
  }
  const rank = (name: string) => (isSimilar(name, nodeName) ? 0 : 1)
  const examples = [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1)).slice(0, EXAMPLES)
  return { withNodeName, onThisNode, examples }
}

/**
 * An error message when the node name seems to be wrong. Call it only after Node and slices have been listed.
 */
export function nodeNameProblem(nodeName: string, nodeExists: boolean, places: EndpointPlaces): string | undefined {
  if (nodeExists || places.onThisNode > 0) return undefined
  const similar = places.examples.find((name) => isSimilar(name, nodeName))
  const hint =
    similar !== undefined
      ? `the name of this node is probably ${JSON.stringify(similar)}`
      : places.examples.length > 0
        ? `endpoints are on ${places.examples.map((name) => JSON.stringify(name)).join(', ')}`
        : 'no endpoint names any node'
  return (
    `Node name ${JSON.stringify(nodeName)} matches no Node and no endpoint (${hint}): every endpoint counts as remote, so ` +
    'traffic policy Local drops all traffic and health checks fail; set --hostname-override to the name of the Node'
  )
}

/** The usual mistakes: short instead of fully qualified, or another spelling. */
function isSimilar(a: string, b: string): boolean {
  const short = (name: string) => name.toLowerCase().split('.')[0]
  return short(a) === short(b)
}
