// What a step of the tour did, and what the page has received since.

import { firstService } from '../parts/first-service.ts'
import type { ActAnswer, Action, ChangeEntry, ExplainAnswer, LoadReport, Snapshot } from '../../protocol.ts'
import type { PageState } from '../store.ts'

/** The state at the start of a step. */
export interface Baseline {
  readonly lastChange: number
  readonly answered: number
  readonly failed: number
  readonly pids: Readonly<Record<string, number | null>>
}

export interface Run {
  /** As it was at the click: numbers in the texts do not change with what the step does. */
  readonly stage: Stage
  readonly baseline: Baseline
  readonly state: 'doing' | 'done' | 'failed'
  readonly answers: readonly ActAnswer[]
  readonly explained: ExplainAnswer | null
  readonly error: string | null
}

export function takeBaseline({ changes, load, snapshot }: PageState): Baseline {
  return {
    lastChange: changes.at(-1)?.id ?? 0,
    answered: load?.answered ?? 0,
    failed: load?.failed ?? 0,
    pids: Object.fromEntries(snapshot.nodes.map(({ name, proxy }) => [name, proxy.pid])),
  }
}

/** What the client saw since the start of the step. A restarted load counts from zero. */
export function loadSince(
  load: LoadReport | null,
  { answered, failed }: Baseline,
): { answered: number; failed: number } {
  if (load === null) return { answered: 0, failed: 0 }
  if (load.answered < answered) return { answered: load.answered, failed: load.failed }
  return { answered: load.answered - answered, failed: load.failed - failed }
}

export function changesSince(changes: readonly ChangeEntry[], { lastChange }: Baseline): readonly ChangeEntry[] {
  return changes.filter(({ id }) => id > lastChange)
}

/** The objects of the tour: the first service with a cluster IP, and its pods. */
export interface Stage {
  readonly namespace: string
  readonly name: string
  readonly id: string
  readonly address: string
  readonly port: number
  readonly deployment: { readonly name: string; readonly replicas: number } | null
  readonly pods: readonly string[]
  readonly node: string
}

export function findStage({ services, nodes, pods, deployments }: Snapshot): Stage | null {
  const service = firstService(
    services.filter(
      ({ system, clusterIPs, ports }) =>
        !system && clusterIPs.length > 0 && ports.some(({ protocol }) => protocol === 'TCP'),
    ),
  )
  const node = nodes[0]
  if (service === undefined || node === undefined) return null
  const own = new Set(service.ports.flatMap(({ backends }) => backends.map(({ pod }) => pod)))
  const behind = pods.filter((pod) => own.has(`${pod.namespace}/${pod.name}`))
  const deployment = deployments.find(
    ({ namespace, name }) =>
      namespace === service.namespace &&
      behind.some((pod) => pod.deployment === name || pod.deployment === `${namespace}/${name}`),
  )
  return {
    namespace: service.namespace,
    name: service.name,
    id: `${service.namespace}/${service.name}`,
    address: service.clusterIPs[0]!,
    port: service.ports[0]!.port,
    deployment: deployment === undefined ? null : { name: deployment.name, replicas: deployment.replicas },
    pods: behind.filter(({ fail, ready }) => fail === 'none' && ready).map(({ name }) => name),
    node: node.name,
  }
}

/** The client of the tour. */
export function tourLoad(stage: Stage): Action {
  return { action: 'load', from: 'outside', to: stage.id, perSecond: 10 }
}

/** How long the rules of the stage's node were away, at most: from the start of the flush to the kernel's acknowledgement; null: they are. */
export function awayMs(changes: readonly ChangeEntry[], { baseline, answers, stage }: Run): number | null {
  const [flush] = answers.filter((answer) => answer.ok).slice(-1)
  const heals = changesSince(changes, baseline).filter(
    ({ why, node, operations, doneMs }) =>
      why === 'heal' && node === stage.node && operations > 0 && flush !== undefined && doneMs >= flush.begunMs,
  )
  if (flush === undefined || heals.length === 0) return null
  return Math.max(...heals.map(({ doneMs }) => doneMs)) - flush.begunMs
}
