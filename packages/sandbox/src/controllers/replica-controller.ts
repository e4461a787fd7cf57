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
import type { ReplicaSet, ReplicaStatus, ReplicationController } from '../apiserver/objects/workloads.ts'
import type { Resource } from '../apiserver/resources/resource.ts'

/** The two kinds differ in their selectors and in who says what happened. */
interface Kind<T extends ApiObject> {
  readonly resource: Resource<T>
  readonly source: string
  owner(object: T): ReplicaOwner
  template(object: T): PodTemplateSpec | undefined
}

const controllerKind: Kind<ReplicationController> = {
  resource: replicationControllers,
  source: 'replication-controller',
  owner: (object) => ({
    object,
    replicas: object.spec.replicas ?? 1,
    minReadySeconds: object.spec.minReadySeconds ?? 0,
    selector: fromMap(object.spec.selector ?? {}),
    templateLabels: object.spec.template?.metadata.labels ?? {},
  }),
  template: ({ spec }) => spec.template,
}

const setKind: Kind<ReplicaSet> = {
  resource: replicaSets,
  source: 'replicaset-controller',
  owner: (object) => ({
    object,
    replicas: object.spec.replicas ?? 1,
    minReadySeconds: object.spec.minReadySeconds ?? 0,
    selector: fromObject(object.spec.selector),
    templateLabels: object.spec.template.metadata.labels ?? {},
  }),
  template: ({ spec }) => spec.template,
}

export function startReplicaControllers(context: ControllerContext): void {
  startKind(context, controllerKind)
  startKind(context, setKind)
}

function startKind<T extends ApiObject & { status: ReplicaStatus }>(context: ControllerContext, kind: Kind<T>): void {
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
    const plan = planReplicas(kind.owner(stored.object), nearby, registry.now())
    carryOut(context, { kind, object: stored.object }, plan)
    if (plan.lookAgainMs !== undefined) queue.addAfter(key, plan.lookAgainMs)
  })
  owners.watchKeys(queue.add)
  registry.collection(pods).listen((change) => {
    for (const key of affected(change, kind, [...owners.values()])) queue.add(key)
  })
}

/** The owners of the pod before and after, and, when it has none, those that might adopt it. */
function affected<T extends ApiObject>(
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
    ({ object }) => object.metadata.namespace === namespace && matchesLabels(kind.owner(object).selector, labels),
  )
  return [...keys, ...takers.map(({ key }) => key)]
}

function carryOut<T extends ApiObject & { status: ReplicaStatus }>(
  context: ControllerContext,
  { kind, object }: { readonly kind: Kind<T>; readonly object: T },
  plan: ReplicaPlan,
): void {
  const { registry, events } = context
  for (const pod of plan.adopt) setOwner(context, pod, ownerReferenceTo(object))
  for (const pod of plan.release) setOwner(context, pod, undefined)
  const template = kind.template(object)
  const missing = template === undefined ? 0 : plan.create
  for (let i = 0; i < missing; i++) {
    const { metadata } = registry.create(pods, newPod(object, template!)).object
    events.record(object, { reason: 'SuccessfulCreate', message: `Created pod: ${metadata.name}`, source: kind.source })
  }
  for (const { metadata } of plan.remove) {
    registry.delete(pods, { namespace: metadata.namespace ?? '', name: metadata.name })
    events.record(object, { reason: 'SuccessfulDelete', message: `Deleted pod: ${metadata.name}`, source: kind.source })
  }
  const { namespace = '', name } = object.metadata
  registry.modify(kind.resource, { namespace, name }, (draft) => Object.assign(draft.status, plan.status), 'status')
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
  registry.modify(pods, { namespace: metadata.namespace ?? '', name: metadata.name }, (draft) => {
    const others = (draft.metadata.ownerReferences ?? []).filter(({ controller }) => controller !== true)
    draft.metadata.ownerReferences = owner === undefined ? others : [...others, owner]
  })
}
