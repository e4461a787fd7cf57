// What runs the pods. The controllers decide which pods run where and with which addresses; the sandbox implements this and
// makes them real.

import type { Container, Pod, Probe } from '../apiserver/objects/pod.ts'

/** What a user asked a pod to do wrong, by the annotation `sandbox/fail`. */
export const failureModes = ['none', 'refuse', 'hang', 'die', 'slow'] as const
export type FailureMode = (typeof failureModes)[number]

/** A pod that has a node and addresses. The object is as it was when the call was made. */
export interface RuntimePod {
  /** `namespace/name` */
  readonly key: string
  readonly uid: string
  readonly nodeName: string
  /** Its addresses, the first of the cluster's first family; those of the node for a pod on the host's network. */
  readonly ips: readonly string[]
  readonly hostNetwork: boolean
  readonly pod: Pod
}

/** What one run of a probe showed; the message says what was wrong. */
export interface ProbeResult {
  readonly isGood: boolean
  readonly message: string
}

export interface PodRuntime {
  /** Resolves when the pod serves on its ports. A rejection is shown as the pod's status, and tried again. */
  start(pod: RuntimePod): Promise<void>
  /**
   * Ends the pod; resolves when nothing is left of it. The time to serve on has passed when this is called:
   * `graceSeconds` is what is left for it to end by itself.
   */
  stop(pod: RuntimePod, graceSeconds: number): Promise<void>
  /**
   * Makes a running pod refuse connections, leave them unanswered, answer slowly, or die; `none` puts it right again. A pod that died
   * is not serving any more; it comes back with `none`.
   */
  setFailure(pod: RuntimePod, mode: FailureMode): Promise<void>
  /** Ends what runs in the pod and starts it again; the pod keeps its network. */
  restart(pod: RuntimePod): Promise<void>
  /** Looks once whether a container is well. Never rejects. */
  probe(pod: RuntimePod, container: Container, probe: Probe): Promise<ProbeResult>
}

/** Runs nothing. Every pod is well at once: for tests, and for a cluster that is only looked at. */
export const noRuntime: PodRuntime = {
  start: async () => {},
  stop: async () => {},
  setFailure: async () => {},
  restart: async () => {},
  probe: async () => ({ isGood: true, message: '' }),
}
