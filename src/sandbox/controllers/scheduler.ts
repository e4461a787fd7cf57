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
  const queue = loop.queue('scheduler', (key) => schedule(context, key))
  const all = registry.collection(pods)
  const addUnscheduled = (): void => {
    for (const { key, object } of all.values()) if (object.spec.nodeName === undefined) queue.add(key)
  }
  addUnscheduled()
  all.listen(({ key, after }) => {
    if (after !== undefined && after.object.spec.nodeName === undefined) queue.add(key)
  })
  registry.collection(nodes).listen(addUnscheduled)
}

function schedule({ registry, events }: ControllerContext, key: string): void {
  const pod = registry.collection(pods).get(key)?.object
  if (pod === undefined || pod.spec.nodeName !== undefined || isDeleting(pod)) return
  const candidates = registry
    .collection(nodes)
    .list()
    .map(({ object }) => object)
  const running = [...registry.collection(pods).values()].map(({ object }) => object)
  const place = placeOf(key)
  const choice = pickNode(pod, candidates, running)
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

function assign({ spec, status }: Pod, nodeName: string, nowMs: number): void {
  spec.nodeName = nodeName
  setCondition(status, { type: 'PodScheduled', status: 'True' }, formatTime(nowMs))
}

function setUnschedulable({ status }: Pod, message: string, nowMs: number): void {
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
  setCondition(status, condition, formatTime(nowMs))
}

export type NodeChoice =
  { readonly kind: 'node'; readonly node: Node } | { readonly kind: 'none'; readonly reason: string }

/** The node with the fewest pods of those that take this one; of several, the first by name. Pure. */
export function pickNode(pod: Pod, nodes: readonly Node[], running: readonly Pod[]): NodeChoice {
  const reasons = nodes.map((node) => [node, whyNot(pod, node)] as const)
  const fitting = reasons.flatMap(([node, reason]) => (reason === undefined ? [node] : []))
  if (fitting.length === 0) return { kind: 'none', reason: explain(reasons.map(([, reason]) => reason ?? '')) }
  const load = (node: Node): number =>
    running.filter((one) => one.spec.nodeName === node.metadata.name && !isDeleting(one) && !isTerminal(one)).length
  const [best] = fitting
    .map((node) => ({ node, load: load(node) }))
    .sort((a, b) => a.load - b.load || (a.node.metadata.name < b.node.metadata.name ? -1 : 1))
  return { kind: 'node', node: best!.node }
}

function explain(reasons: readonly string[]): string {
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  const parts = [...counts].map(([reason, count]) => `${count} ${reason}`)
  return `0/${reasons.length} nodes are available${parts.length === 0 ? '' : `: ${parts.join(', ')}`}.`
}

function whyNot(pod: Pod, node: Node): string | undefined {
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
  return taint === undefined ? undefined : `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`
}

const unschedulableTaint: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }

function tolerates(tolerations: readonly Toleration[], taint: Taint): boolean {
  return tolerations.some(({ key, operator = 'Equal', value = '', effect }) => {
    if (effect !== undefined && effect !== taint.effect) return false
    if (key === undefined) return operator === 'Exists'
    return key === taint.key && (operator === 'Exists' || value === (taint.value ?? ''))
  })
}
