// The answer to the question `flows`: connections through Services that began or ended while a client asked.

import type { FlowRecord } from '../../flows/flow-record.ts'

export interface FlowsAnswer {
  readonly nodeName: string
  readonly mode: string
  /** The oldest first, after the one that the client named. */
  readonly flows: readonly NumberedFlow[]
  /** What to ask for next: `after=N`. */
  readonly last: number
  /** Records that were dropped since the client asked last: it asked too seldom. */
  readonly missed: number
  /** Connections without a record since anybody began to look: there were too many. */
  readonly leftOut: number
  /** What the records do not have, and why. */
  readonly lacks: readonly string[]
}

export interface NumberedFlow extends FlowRecord {
  /** Counts up from 1 in each process. */
  readonly number: number
}
