import type { ApiObject, Condition, ObjectMeta } from './meta.ts'

export interface Pod extends ApiObject {
  spec: PodSpec
  status: PodStatus
}

export interface PodSpec {
  containers: Container[]
  initContainers?: Container[]
  nodeName?: string
  nodeSelector?: Record<string, string>
  hostNetwork?: boolean
  hostname?: string
  subdomain?: string
  restartPolicy?: string
  terminationGracePeriodSeconds?: number
  dnsPolicy?: string
  dnsConfig?: PodDnsConfig
  serviceAccountName?: string
  serviceAccount?: string
  schedulerName?: string
  securityContext?: object
  enableServiceLinks?: boolean
  tolerations?: Toleration[]
  readinessGates?: { conditionType: string }[]
  volumes?: Volume[]
}

export interface PodDnsConfig {
  nameservers?: string[]
  searches?: string[]
  options?: { name: string; value?: string }[]
}

export interface Volume {
  name: string
  [source: string]: unknown
}

export interface Container {
  name: string
  image?: string
  command?: string[]
  args?: string[]
  env?: EnvVar[]
  ports?: ContainerPort[]
  resources?: object
  terminationMessagePath?: string
  terminationMessagePolicy?: string
  imagePullPolicy?: string
  readinessProbe?: Probe
  livenessProbe?: Probe
  startupProbe?: Probe
  lifecycle?: object
}

export interface Probe {
  httpGet?: {
    path?: string
    port: number | string
    host?: string
    scheme?: string
    httpHeaders?: { name: string; value: string }[]
  }
  grpc?: { port: number; service?: string }
  exec?: { command?: string[] }
  tcpSocket?: { port: number | string; host?: string }
  initialDelaySeconds?: number
  timeoutSeconds?: number
  periodSeconds?: number
  successThreshold?: number
  failureThreshold?: number
}

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: { fieldRef?: { apiVersion?: string; fieldPath: string } }
}

export interface ContainerPort {
  name?: string
  hostPort?: number
  containerPort: number
  protocol?: string
}

export interface Toleration {
  key?: string
  operator?: string
  value?: string
  effect?: string
}

export interface PodStatus {
  observedGeneration?: number
  phase?: string
  conditions?: Condition[]
  message?: string
  reason?: string
  hostIP?: string
  hostIPs?: { ip: string }[]
  podIP?: string
  podIPs?: { ip: string }[]
  startTime?: string
  initContainerStatuses?: ContainerStatus[]
  containerStatuses?: ContainerStatus[]
  qosClass?: string
  nominatedNodeName?: string
}

export interface ContainerStatus {
  name: string
  state: ContainerState
  lastState: ContainerState
  ready: boolean
  restartCount: number
  image: string
  imageID: string
  containerID?: string
  started?: boolean
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string }
  running?: { startedAt?: string | null }
  terminated?: {
    exitCode: number
    signal?: number
    reason?: string
    startedAt?: string | null
    finishedAt?: string | null
  }
}

export interface PodTemplateSpec {
  metadata: Partial<ObjectMeta>
  spec: PodSpec
}

export function isTerminal(pod: Pod): boolean {
  return pod.status.phase === 'Succeeded' || pod.status.phase === 'Failed'
}

export function conditionOf(status: { conditions?: Condition[] }, type: string): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type)
}

export function isReady(pod: Pod): boolean {
  return conditionOf(pod.status, 'Ready')?.status === 'True'
}
