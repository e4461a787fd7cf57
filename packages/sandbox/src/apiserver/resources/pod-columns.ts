// The cells of `kubectl get pods`.

import { conditionOf, isTerminal } from '../objects/pod.ts'
import { ageOf } from './columns.ts'
import type { ContainerStatus, Pod } from '../objects/pod.ts'

export function formatReady({ spec, status }: Pod): string {
  const ready = (status.containerStatuses ?? []).filter((one) => one.ready && one.state.running !== undefined)
  return `${ready.length}/${(spec.containers ?? []).length}`
}

/** What the pod is doing, most specific word first: deleted, stuck in a container, done, or just its phase. */
export function formatReason(pod: Pod): string {
  if (pod.metadata.deletionTimestamp !== undefined && !isTerminal(pod)) {
    return pod.status.reason === 'NodeLost' ? 'Unknown' : 'Terminating'
  }
  return initReason(pod) ?? containerReason(pod)
}

function initReason({ spec, status }: Pod): string | undefined {
  for (const [i, { state }] of (status.initContainerStatuses ?? []).entries()) {
    if (state.terminated?.exitCode === 0) continue
    if (state.terminated !== undefined) return `Init:${terminatedReason(state.terminated)}`
    const waiting = state.waiting?.reason
    if (waiting !== undefined && waiting !== 'PodInitializing') return `Init:${waiting}`
    return `Init:${i}/${spec.initContainers?.length ?? 0}`
  }
  return undefined
}

function containerReason({ status }: Pod): string {
  const statuses = status.containerStatuses ?? []
  const reasons = statuses.map(({ state }) =>
    state.waiting?.reason !== undefined
      ? state.waiting.reason
      : state.terminated === undefined
        ? undefined
        : terminatedReason(state.terminated),
  )
  const reason = reasons.find((one) => one !== undefined) ?? status.reason ?? status.phase ?? ''
  if (reason !== 'Completed') return reason
  // One container is done, others may still be at it.
  const running = statuses.some((one) => one.ready && one.state.running !== undefined)
  if (running) return conditionOf(status, 'Ready')?.status === 'True' ? 'Running' : 'NotReady'
  return reasons.find((one) => one !== undefined && one !== 'Completed') ?? reason
}

function terminatedReason(state: { exitCode: number; signal?: number; reason?: string }): string {
  return state.reason ?? (state.signal === undefined ? `ExitCode:${state.exitCode}` : `Signal:${state.signal}`)
}

export function formatRestarts({ status }: Pod, nowMs: number): string {
  const statuses: readonly ContainerStatus[] = status.containerStatuses ?? []
  const count = statuses.reduce((sum, { restartCount }) => sum + restartCount, 0)
  const last = statuses
    .map(({ lastState }) => lastState.terminated?.finishedAt ?? '')
    .sort()
    .at(-1)
  return count === 0 || last === undefined || last === '' ? String(count) : `${count} (${ageOf(last, nowMs)} ago)`
}
