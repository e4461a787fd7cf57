// The status of a pod, from what is known of it. Pure.

import { failAnnotation, readyAnnotation } from '../apiserver/objects/pod-annotations.ts'
import { formatTime } from '../apiserver/time.ts'
import { setCondition } from './conditions.ts'
import type { ContainerState, ContainerStatus, Pod, PodStatus } from '../apiserver/objects/pod.ts'
import type { FailureMode } from './pod-runtime.ts'

export interface PodFacts {
  readonly ips: readonly string[]
  readonly hostIps: readonly string[]
  readonly stage: 'creating' | 'running' | 'dead'
  /** Why it does not start. */
  readonly problem: string | undefined
  /** What the probes of a container have shown. */
  readonly probed: (container: string) => { readonly isStarted: boolean; readonly isReady: boolean }
  /** When its containers were started, in milliseconds since 1970. */
  readonly startedMs: number
  readonly restarts: number
  readonly nowMs: number
}

/** What the user asked for with annotations. */
export function requestedBehaviour({ metadata }: Pod): { readonly ready: boolean; readonly failure: FailureMode } {
  const fail = metadata.annotations?.[failAnnotation] ?? ''
  const failure = (['refuse', 'hang', 'die', 'slow'] as const).find((mode) => mode === fail) ?? 'none'
  return { ready: metadata.annotations?.[readyAnnotation] !== 'false', failure }
}

/** Writes the status into a draft of the pod. */
export function setPodStatus(pod: Pod, facts: PodFacts): void {
  const { status } = pod
  const now = formatTime(facts.nowMs)
  status.phase = facts.stage === 'creating' ? 'Pending' : 'Running'
  status.startTime ??= now
  setAddresses(status, facts)
  const works = facts.stage === 'running'
  const isReady = (name: string): boolean => works && requestedBehaviour(pod).ready && facts.probed(name).isReady
  const unready = pod.spec.containers.filter(({ name }) => !isReady(name)).map(({ name }) => name)
  const ready = unready.length === 0
  status.containerStatuses = pod.spec.containers.map((container) =>
    containerStatus(
      status,
      { name: container.name, image: container.image ?? '', ready: isReady(container.name) },
      facts,
    ),
  )
  const generation = pod.metadata.generation
  const observed = generation === undefined ? {} : { observedGeneration: generation }
  if (generation !== undefined) status.observedGeneration = generation
  const set = (type: string, holds: boolean, why: { reason: string; message: string } | undefined): void =>
    setCondition(status, { type, status: holds ? 'True' : 'False', ...observed, ...(holds ? {} : why) }, now)
  const notReady = { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` }
  set('PodReadyToStartContainers', works || facts.stage === 'dead', undefined)
  set('Initialized', true, undefined)
  set(
    'Ready',
    ready && gatesOpen(pod),
    ready ? { reason: 'ReadinessGatesNotReady', message: 'a readiness gate is closed' } : notReady,
  )
  set('ContainersReady', ready, notReady)
  set('PodScheduled', true, undefined)
}

function gatesOpen({ spec, status }: Pod): boolean {
  return (spec.readinessGates ?? []).every(({ conditionType }) =>
    status.conditions?.some(({ type, status }) => type === conditionType && status === 'True'),
  )
}

function setAddresses(status: PodStatus, { ips, hostIps }: PodFacts): void {
  if (hostIps[0] !== undefined) {
    status.hostIP = hostIps[0]
    status.hostIPs = hostIps.map((ip) => ({ ip }))
  }
  if (ips[0] === undefined) return
  status.podIP = ips[0]
  status.podIPs = ips.map((ip) => ({ ip }))
}

interface ContainerFacts {
  readonly name: string
  readonly image: string
  readonly ready: boolean
}

function containerStatus(status: PodStatus, container: ContainerFacts, facts: PodFacts): ContainerStatus {
  const before = status.containerStatuses?.find(({ name }) => name === container.name)
  return {
    ...container,
    imageID: '',
    restartCount: facts.restarts,
    started: facts.stage === 'running' && facts.probed(container.name).isStarted,
    ...(facts.stage === 'creating' ? {} : { containerID: `sandbox://${container.name}` }),
    state: stateOf(facts),
    lastState: lastState(before, facts),
  }
}

function stateOf({ stage, problem, startedMs }: PodFacts): ContainerState {
  switch (stage) {
    case 'running':
      return { running: { startedAt: formatTime(startedMs) } }
    case 'dead':
      return { waiting: { reason: 'CrashLoopBackOff', message: 'the annotation sandbox/fail makes the pod die' } }
    case 'creating':
      return problem === undefined
        ? { waiting: { reason: 'ContainerCreating' } }
        : { waiting: { reason: 'CreateContainerError', message: problem } }
  }
}

function lastState(before: ContainerStatus | undefined, { stage, nowMs }: PodFacts): ContainerState {
  if (stage !== 'dead' || before?.state.running === undefined) return before?.lastState ?? {}
  const startedAt = before.state.running.startedAt ?? null
  return { terminated: { exitCode: 137, reason: 'Error', startedAt, finishedAt: formatTime(nowMs) } }
}
