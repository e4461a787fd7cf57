// Keeps as many pods as ReplicationControllers and ReplicaSets ask for.

import { controllerOf } from '../apiserver/objects/meta.ts'
import { fromMap, fromObject, matchesLabels } from '../apiserver/selectors/label-selector.ts'
import { ownerReferenceTo, placeOf } from './controller.ts'
import { planReplicas } from './replicas.ts'
import { pods, replicaSets, replicationControllers } from '../apiserver/resources/table.ts'
import type { Change } from '../apiserver/store/collection.ts'
import type { ControllerContext } from './controller.ts'
import type { ApiObject, OwnerReference } from '../apiserver/objects/meta.ts'
import type { Pod, PodTemplateSpec } from '../apiserver/objects/pod.ts'
import type { ReplicaOwner, ReplicaPlan } from './replicas.ts'
import type { ReplicaSet, ReplicationController } from '../apiserver/objects/workloads.ts'
import type { Requirement } from '../apiserver/selectors/label-selector.ts'
import type { Resource } from '../apiserver/resources/resource.ts'

type Replicated = ReplicationController | ReplicaSet

/** The two kinds differ in their selectors and in who says what happened. */
interface Kind<T extends Replicated> {
  readonly resource: Resource<T>
  readonly source: string
  selector(object: T): readonly Requirement[]
}

const controllerKind: Kind<ReplicationController> = {
  resource: replicationControllers,
  source: 'replication-controller',
  selector: ({ spec }) => fromMap(spec.selector ?? {}),
}

const setKind: Kind<ReplicaSet> = {
  resource: replicaSets,
  source: 'replicaset-controller',
  selector: ({ spec }) => fromObject(spec.selector),
}

export function startReplicaControllers(context: ControllerContext): void {
  startKind(context, controllerKind)
  startKind(context, setKind)
}

function startKind<T extends Replicated>(context: ControllerContext, kind: Kind<T>): void {
  const { registry, loop } = context
  const owners = registry.collection(kind.resource)
  const queue = loop.queue(kind.resource.plural, (key) => {
    const stored = owners.get(key)
    if (stored === undefined) return
    const { namespace } = placeOf(key)
    const nearby = registry
      .collection(pods)
      .objects()
      .filter(({ metadata }) => metadata.namespace === namespace)
    const plan = planReplicas(ownerOf(stored.object, kind), nearby, registry.now())
    carryOut(context, { kind, object: stored.object }, plan)
    if (plan.lookAgainMs !== undefined) queue.addAfter(key, plan.lookAgainMs)
  })
  owners.watchKeys(queue.add)
  registry.collection(pods).listen((change) => {
    for (const key of affected(change, kind, [...owners.values()])) queue.add(key)
  })
}

function ownerOf<T extends Replicated>(object: T, kind: Kind<T>): ReplicaOwner {
  const { replicas = 1, minReadySeconds = 0, template } = object.spec
  const templateLabels = template?.metadata.labels ?? {}
  return { object, replicas, minReadySeconds, selector: kind.selector(object), templateLabels }
}

/** The owners of the pod before and after, and, when it has none, those that might adopt it. */
function affected<T extends Replicated>(
  { before, after }: Change<Pod>,
  kind: Kind<T>,
  owners: readonly { readonly key: string; readonly object: T }[],
): string[] {
  const keys = [before, after].flatMap((stored) => {
    const owner = stored === undefined ? undefined : controllerOf(stored.object)
    if (owner === undefined || owner.kind !== kind.resource.kind) return []
    return [`${stored!.object.metadata.namespace}/${owner.name}`]
  })
  if (after === undefined || controllerOf(after.object) !== undefined) return keys
  const { namespace, labels } = after.object.metadata
  const takers = owners.filter(
    ({ object }) => object.metadata.namespace === namespace && matchesLabels(kind.selector(object), labels),
  )
  return [...keys, ...takers.map(({ key }) => key)]
}

function carryOut<T extends Replicated>(
  context: ControllerContext,
  { kind, object }: { readonly kind: Kind<T>; readonly object: T },
  plan: ReplicaPlan,
): void {
  const { registry, events } = context
  for (const pod of plan.adopt) setOwner(context, pod, ownerReferenceTo(object))
  for (const pod of plan.release) setOwner(context, pod, undefined)
  const { template } = object.spec
  const missing = template === undefined ? 0 : plan.create
  for (let i = 0; i < missing; i++) {
    const { metadata } = registry.create(pods, newPod(object, template!)).object
    events.record(object, { reason: 'SuccessfulCreate', message: `Created pod: ${metadata.name}`, source: kind.source })
  }
  for (const { metadata } of plan.remove) {
    registry.delete(pods, metadata)
    events.record(object, { reason: 'SuccessfulDelete', message: `Deleted pod: ${metadata.name}`, source: kind.source })
  }
  registry.modify(kind.resource, object.metadata, (draft) => Object.assign(draft.status, plan.status), 'status')
}

function newPod(owner: ApiObject, template: PodTemplateSpec): object {
  const { labels, annotations, finalizers } = template.metadata
  return {
    metadata: {
      generateName: `${owner.metadata.name}-`,
      namespace: owner.metadata.namespace,
      labels,
      annotations,
      finalizers,
      ownerReferences: [ownerReferenceTo(owner)],
    },
    spec: template.spec,
  }
}

function setOwner({ registry }: ControllerContext, { metadata }: Pod, owner: OwnerReference | undefined): void {
  registry.modify(pods, metadata, (draft) => {
    const others = (draft.metadata.ownerReferences ?? []).filter(({ controller }) => controller !== true)
    draft.metadata.ownerReferences = owner === undefined ? others : [...others, owner]
  })
}
