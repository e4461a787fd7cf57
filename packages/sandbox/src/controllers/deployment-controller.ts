// Rolls Deployments out.

import { conditionOf } from '../apiserver/objects/pod.ts'
import { controllerOf } from '../apiserver/objects/meta.ts'
import { deployments, replicaSets } from '../apiserver/resources/table.ts'
import { hashLabel, planDeployment, revisionAnnotation, revisionOf } from './deployment-plan.ts'
import { ownerReferenceTo } from './controller.ts'
import { sameJson } from '../apiserver/json.ts'
import type { ControllerContext } from './controller.ts'
import type { Deployment, ReplicaSet } from '../apiserver/objects/workloads.ts'
import type { DeploymentPlan } from './deployment-plan.ts'

const source = 'deployment-controller'
/** The revision is the set's own; what kubectl applied is not the set's. */
const notCopied: ReadonlySet<string> = new Set([
  revisionAnnotation,
  'kubectl.kubernetes.io/last-applied-configuration',
  'deprecated.deployment.rollback.to',
])

export function startDeploymentController(context: ControllerContext): void {
  const { registry, loop } = context
  const queue = loop.queue('deployments', (key) => {
    const deployment = registry.collection(deployments).get(key)?.object
    if (deployment === undefined) return
    const plan = planDeployment(deployment, setsOf(context, deployment), registry.now())
    carryOut(context, deployment, plan)
    const progressing = conditionOf(plan.status, 'Progressing')
    // A rollout that got stuck is noticed by the clock alone.
    if (progressing?.reason === 'ReplicaSetUpdated') {
      queue.addAfter(key, (deployment.spec.progressDeadlineSeconds ?? 600) * 1000 + 1000)
    }
  })
  registry.collection(deployments).watchKeys(queue.add)
  registry.collection(replicaSets).listen(({ last }) => {
    const owner = controllerOf(last.object)
    if (owner?.kind === 'Deployment') queue.add(`${last.object.metadata.namespace}/${owner.name}`)
  })
}

function setsOf({ registry }: ControllerContext, { metadata }: Deployment): ReplicaSet[] {
  return registry
    .collection(replicaSets)
    .objects()
    .filter((set) => controllerOf(set)?.uid === metadata.uid && set.metadata.namespace === metadata.namespace)
}

function carryOut(context: ControllerContext, deployment: Deployment, plan: DeploymentPlan): void {
  const { registry, events } = context
  const place = deployment.metadata
  if (plan.create !== undefined) createSet(context, deployment, plan)
  if (plan.current !== undefined) annotateSet(context, deployment, plan)
  for (const { set, to } of plan.scale) {
    const from = set.spec.replicas ?? 0
    registry.modify(replicaSets, set.metadata, ({ spec }) => (spec.replicas = to))
    const message = `Scaled ${to > from ? 'up' : 'down'} replica set ${set.metadata.name} from ${from} to ${to}`
    events.record(deployment, { reason: 'ScalingReplicaSet', message, source })
  }
  for (const set of plan.remove) registry.delete(replicaSets, set.metadata)
  if (plan.current !== undefined || plan.create !== undefined) {
    registry.modify(deployments, place, ({ metadata }) => {
      ;(metadata.annotations ??= {})[revisionAnnotation] = String(plan.revision)
    })
  }
  registry.modify(deployments, place, (draft) => (draft.status = plan.status), 'status')
}

function createSet({ registry, events }: ControllerContext, deployment: Deployment, plan: DeploymentPlan): void {
  const { name, hash, replicas } = plan.create!
  const { spec, metadata } = deployment
  const labels = { ...spec.template.metadata.labels, [hashLabel]: hash }
  registry.create(replicaSets, {
    metadata: {
      name,
      namespace: metadata.namespace,
      labels,
      annotations: annotationsOf(deployment, plan.revision),
      ownerReferences: [ownerReferenceTo(deployment)],
    },
    spec: {
      replicas,
      minReadySeconds: spec.minReadySeconds,
      selector: { ...spec.selector, matchLabels: { ...spec.selector.matchLabels, [hashLabel]: hash } },
      template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
    },
  })
  const message = `Scaled up replica set ${name} from 0 to ${replicas}`
  events.record(deployment, { reason: 'ScalingReplicaSet', message, source })
}

function annotationsOf({ metadata, spec }: Deployment, revision: number): Record<string, string> {
  const copied = Object.entries(metadata.annotations ?? {}).filter(([key]) => !notCopied.has(key))
  return {
    ...(Object.fromEntries(copied) as Record<string, string>),
    [revisionAnnotation]: String(revision),
    'deployment.kubernetes.io/desired-replicas': String(spec.replicas ?? 1),
  }
}

/** A set that becomes the current one again (a rollback) gets a new number. */
function annotateSet({ registry }: ControllerContext, deployment: Deployment, plan: DeploymentPlan): void {
  const set = plan.current!
  const annotations = { ...set.metadata.annotations, ...annotationsOf(deployment, plan.revision) }
  if (revisionOf(set) === plan.revision && sameJson(annotations, set.metadata.annotations)) return
  registry.modify(replicaSets, set.metadata, ({ metadata }) => (metadata.annotations = annotations))
}
