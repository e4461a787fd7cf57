// How single results of a probe become the state of a container. Pure.

import type { Probe } from '../apiserver/objects/pod.ts'

export type ProbeKind = 'startup' | 'readiness' | 'liveness'

export interface ProbeState {
  /** What counts, and what was seen last, how often in a row. */
  readonly isGood: boolean
  readonly last: boolean | undefined
  readonly run: number
}

/** A container is alive until it is shown not to be; it is neither started nor ready until it is shown to be. */
export function initialState(kind: ProbeKind): ProbeState {
  return { isGood: kind === 'liveness', last: undefined, run: 0 }
}

/** After another result. Only as many in a row as the probe asks for change what counts. */
export function nextState(state: ProbeState, probe: Probe, result: boolean): ProbeState {
  const run = result === state.last ? state.run + 1 : 1
  const threshold = result ? (probe.successThreshold ?? 1) : (probe.failureThreshold ?? 3)
  return { isGood: run >= threshold ? result : state.isGood, last: result, run }
}

/** Whether this result is the one that a container is restarted for. */
export function isFatal(kind: ProbeKind, probe: Probe, { last, run }: ProbeState): boolean {
  return kind !== 'readiness' && last === false && run >= (probe.failureThreshold ?? 3)
}
