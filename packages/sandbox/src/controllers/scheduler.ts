// Finds a node for each pod that has none.

import { isDeleting } from '../apiserver/objects/meta.ts'
import { nodes, pods } from '../apiserver/resources/table.ts'
import { formatTime } from '../apiserver/time.ts'
import { isTerminal } from '../apiserver/objects/pod.ts'
import { placeOf } from './controller.ts'
import { setCondition } from './conditions.ts'
import type { ControllerContext } from './controller.ts'
import type { Node, Taint } from '../apiserver/objects/node.ts'
import type { Pod, Toleration } from '../apiserver/objects/pod.ts'

const source = 'default-scheduler'

export function startScheduler(context: ControllerContext): void {
  const { registry, loop } = context
  const all = registry.collection(pods)
  const loads = new NodeLoads()
  for (const { object } of all.values()) loads.replace(undefined, object)
  const queue = loop.queue('scheduler', (key) => schedule(context, key, loads))
  const waiting = new Set<string>()
  const addWaiting = (): void => {
    for (const key of waiting) queue.add(key)
  }
  for (const { key, object } of all.values()) if (object.spec.nodeName === undefined) waiting.add(key)
  addWaiting()
  all.listen(({ key, before, after }) => {
    const isRoom = loads.replace(before?.object, after?.object)
    if (after === undefined || after.object.spec.nodeName !== undefined) waiting.delete(key)
    else {
      waiting.add(key)
      queue.add(key)
    }
    if (isRoom) addWaiting()
  })
  registry.collection(nodes).listen(addWaiting)
}

function schedule({ registry, events }: ControllerContext, key: string, loads: NodeLoads): void {
  const pod = registry.collection(pods).get(key)?.object
  if (pod === undefined || pod.spec.nodeName !== undefined || isDeleting(pod)) return
  const candidates = registry.collection(nodes).objects()
  const place = placeOf(key)
  const choice = pickNode(pod, candidates, loads)
  if (choice.kind === 'none') {
    registry.modify(pods, place, (draft) => setUnschedulable(draft, choice.reason, registry.now()), 'status')
    events.record(pod, { type: 'Warning', reason: 'FailedScheduling', message: choice.reason, source })
    return
  }
  const { name } = choice.node.metadata
  // In one write, as a binding is: watchers see no pod that has a node but was not scheduled.
  registry.modify(pods, place, (draft) => assign(draft, name, registry.now()), 'spec and status')
  events.record(pod, { reason: 'Scheduled', message: `Successfully assigned ${key} to ${name}`, source })
}

/** How many pods each node has, those that are going or gone not counted. */
export class NodeLoads {
  readonly #counts = new Map<string, number>()

  of(node: string): number {
    return this.#counts.get(node) ?? 0
  }

  /** Follows a change of a pod. Whether a node has more capacity left than before. */
  replace(before: Pod | undefined, after: Pod | undefined): boolean {
    const [left, entered] = [before, after].map((pod) => (pod === undefined ? undefined : placeTaken(pod)))
    if (left === entered) return false
    if (left !== undefined) this.#counts.set(left, this.of(left) - 1)
    if (entered !== undefined) this.#counts.set(entered, this.of(entered) + 1)
    return left !== undefined
  }
}

/** The node whose capacity a pod takes. */
function placeTaken(pod: Pod): string | undefined {
  return isDeleting(pod) || isTerminal(pod) ? undefined : pod.spec.nodeName
}

function assign({ spec, status }: Pod, nodeName: string, nowMs: number): void {
  spec.nodeName = nodeName
  setCondition(status, { type: 'PodScheduled', status: 'True' }, formatTime(nowMs))
}

function setUnschedulable({ status }: Pod, message: string, nowMs: number): void {
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
  setCondition(status, condition, formatTime(nowMs))
}

export type NodeChoice =
  | { readonly kind: 'node'; readonly node: Node }
  | { readonly kind: 'none'; readonly reason: string }

/** The node with the fewest pods of those that take this one; of several, the first by name. Pure. */
export function pickNode(pod: Pod, nodes: readonly Node[], loads: Pick<NodeLoads, 'of'>): NodeChoice {
  const reasons = nodes.map((node) => [node, whyNot(pod, node, loads.of(node.metadata.name))] as const)
  const fitting = reasons.flatMap(([node, reason]) => (reason === undefined ? [node] : []))
  if (fitting.length === 0) return { kind: 'none', reason: explain(reasons.map(([, reason]) => reason ?? '')) }
  const best = fitting.reduce((a, b) => {
    const difference = loads.of(a.metadata.name) - loads.of(b.metadata.name)
    return difference < 0 || (difference === 0 && a.metadata.name < b.metadata.name) ? a : b
  })
  return { kind: 'node', node: best }
}

function explain(reasons: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`)
  return `0/${reasons.length} nodes are available${parts.length === 0 ? '' : `: ${parts.join(', ')}`}.`
}

function whyNot(pod: Pod, node: Node, load: number): string | undefined {
  if (node.spec.unschedulable === true && !tolerates(pod.spec.tolerations ?? [], unschedulableTaint)) {
    return 'node(s) were unschedulable'
  }
  const labels = node.metadata.labels ?? {}
  if (Object.entries(pod.spec.nodeSelector ?? {}).some(([key, value]) => labels[key] !== value)) {
    return "node(s) didn't match Pod's node affinity/selector"
  }
  const taint = (node.spec.taints ?? []).find(
    (one) => one.effect !== 'PreferNoSchedule' && !tolerates(pod.spec.tolerations ?? [], one),
  )
  if (taint !== undefined) return `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`
  return load >= Number(node.status.allocatable?.['pods'] ?? Infinity) ? 'Too many pods' : undefined
}

const unschedulableTaint: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

function tolerates(tolerations: readonly Toleration[], taint: Taint): boolean {
  return tolerations.some(({ key, operator = 'Equal', value = '', effect }) => {
    if (effect !== undefined && effect !== taint.effect) return false
    if (key === undefined) return operator === 'Exists'
    return key === taint.key && (operator === 'Exists' || value === (taint.value ?? ''))
  })
}
