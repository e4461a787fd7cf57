import type { PodTemplateSpec } from './pod.ts'
import type { ApiObject, Condition, LabelSelector } from './meta.ts'

export interface ReplicationController extends ApiObject {
  spec: {
    replicas?: number
    minReadySeconds?: number
    selector?: Record<string, string>
    template?: PodTemplateSpec
  }
  status: ReplicaStatus
}

export interface ReplicaSet extends ApiObject {
  spec: {
    replicas?: number
    minReadySeconds?: number
    selector: LabelSelector
    template: PodTemplateSpec
  }
  status: ReplicaStatus
}

export interface ReplicaStatus {
  replicas: number
  fullyLabeledReplicas?: number
  readyReplicas?: number
  availableReplicas?: number
  observedGeneration?: number
  conditions?: Condition[]
}

export interface Deployment extends ApiObject {
  spec: DeploymentSpec
  status: DeploymentStatus
}

export interface DeploymentSpec {
  replicas?: number
  selector: LabelSelector
  template: PodTemplateSpec
  strategy: DeploymentStrategy
  minReadySeconds?: number
  revisionHistoryLimit?: number
  paused?: boolean
  progressDeadlineSeconds?: number
}

export interface DeploymentStrategy {
  type?: string
  rollingUpdate?: { maxUnavailable?: number | string; maxSurge?: number | string }
}

export interface DeploymentStatus {
  observedGeneration?: number
  replicas?: number
  updatedReplicas?: number
  readyReplicas?: number
  availableReplicas?: number
  unavailableReplicas?: number
  conditions?: Condition[]
}

export interface DaemonSet extends ApiObject {
  spec: {
    selector: LabelSelector
    template: PodTemplateSpec
    updateStrategy: DeploymentStrategy
    minReadySeconds?: number
    revisionHistoryLimit?: number
  }
  status: DaemonSetStatus
}

export interface DaemonSetStatus {
  currentNumberScheduled: number
  numberMisscheduled: number
  desiredNumberScheduled: number
  numberReady: number
  updatedNumberScheduled?: number
  numberAvailable?: number
}

export interface Scale extends ApiObject {
  spec: { replicas?: number }
  status: { replicas: number; selector?: string }
}
