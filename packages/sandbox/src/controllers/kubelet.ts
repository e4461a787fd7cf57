// Runs pods on their nodes: gives them addresses, has them started and stopped, and says how they are. It stands for the
// kubelets of all nodes.

import { hostAddresses, PodAddresses } from './pod-addresses.ts'
import { isDeleting } from '../apiserver/objects/meta.ts'
import { ContainerProbes } from './container-probes.ts'
import { isTerminal } from '../apiserver/objects/pod.ts'
import { messageOf } from '../../../../src/lib/errors.ts'
import { nodes, pods } from '../apiserver/resources/table.ts'
import { placeOf } from './controller.ts'
import { setPodStatus, requestedBehaviour } from './pod-status.ts'
import type { ControllerContext } from './controller.ts'
import type { FailureMode, PodRuntime, RuntimePod } from './pod-runtime.ts'
import type { Node } from '../apiserver/objects/node.ts'
import type { Container, Pod } from '../apiserver/objects/pod.ts'
import type { WorkQueue } from './control-loop.ts'

export interface KubeletOptions {
  readonly runtime: PodRuntime
  /**
   * How long a pod that is deleted serves on, unless its container says otherwise with a preStop sleep. Never longer than
   * its grace period.
   */
  readonly drainSeconds: number
}

const retryMs = 1000

/** What the kubelet records of a pod beside its object. */
interface Running {
  readonly uid: string
  runtimePod: RuntimePod
  stage: 'starting' | 'running' | 'stopping' | 'stopped'
  failure: FailureMode
  /** A change of the failure mode is on its way. */
  changing: boolean
  problem: string | undefined
  startedMs: number
  restarts: number
  probes: ReadonlyMap<string, ContainerProbes>
  /** When it stops serving; undefined for a pod that is not deleted. */
  drainUntilMs: number | undefined
}

export class Kubelet {
  readonly #context: ControllerContext
  readonly #options: KubeletOptions
  readonly #running = new Map<string, Running>()
  readonly #addresses = new PodAddresses()
  readonly #queue: WorkQueue

  constructor(context: ControllerContext, options: KubeletOptions) {
    this.#context = context
    this.#options = options
    this.#queue = context.loop.queue('kubelet', (key) => this.#sync(key))
    const all = context.registry.collection(pods)
    all.watchKeys(this.#queue.add)
    context.registry.collection(nodes).listen(({ before }) => {
      if (before === undefined) for (const { key } of all.values()) this.#queue.add(key)
    })
  }

  /** Stops every pod, whatever its object says. */
  async stopAll(): Promise<void> {
    const all = [...this.#running.values()].filter(({ stage }) => stage !== 'stopped')
    for (const { probes } of all) for (const one of probes.values()) one.stop()
    await Promise.allSettled(all.map(({ runtimePod }) => this.#options.runtime.stop(runtimePod, 0)))
  }

  #sync(key: string): void {
    const pod = this.#context.registry.collection(pods).get(key)?.object
    const running = this.#running.get(key)
    // A pod of the same name may be another one: the old one goes first.
    if (running !== undefined && running.uid !== pod?.metadata.uid) {
      this.#stop(key, running, 0)
      return
    }
    if (pod === undefined || pod.spec.nodeName === undefined) return
    const node = this.#context.registry.find(nodes, { name: pod.spec.nodeName })?.object
    if (isDeleting(pod)) this.#drain(key, pod, running)
    else if (running === undefined && node !== undefined && !isTerminal(pod)) this.#start(key, pod, node)
    else if (running !== undefined) this.#follow(key, pod, running)
  }

  #start(key: string, pod: Pod, node: Node): void {
    const ips = this.#ipsFor(pod, node)
    if (ips === undefined) {
      this.#record(pod, { type: 'Warning', reason: 'FailedCreatePodSandBox', message: "the node's pod range is full" })
      this.#queue.addAfter(key, retryMs)
      return
    }
    const { failure } = requestedBehaviour(pod)
    const running: Running = {
      uid: pod.metadata.uid ?? '',
      runtimePod: {
        key,
        uid: pod.metadata.uid ?? '',
        nodeName: node.metadata.name,
        ips,
        hostNetwork: pod.spec.hostNetwork === true,
        pod,
      },
      stage: 'starting',
      failure: 'none',
      changing: false,
      problem: undefined,
      startedMs: 0,
      restarts: 0,
      probes: new Map(),
      drainUntilMs: undefined,
    }
    running.probes = new Map(
      pod.spec.containers.map((container) => [container.name, this.#probesOf(key, running, container)]),
    )
    this.#running.set(key, running)
    this.#writeStatus(key, running)
    void this.#launch(key, running, failure)
  }

  #ipsFor(pod: Pod, node: Node): readonly string[] | undefined {
    if (pod.spec.hostNetwork === true) return hostAddresses(node)
    return this.#addresses.pick(node)
  }

  async #launch(key: string, running: Running, failure: FailureMode): Promise<void> {
    const { runtime } = this.#options
    try {
      await runtime.start(running.runtimePod)
      if (running.stage !== 'starting') return
      if (failure !== 'none') await runtime.setFailure(running.runtimePod, failure)
      running.failure = failure
      running.stage = 'running'
      running.problem = undefined
      running.startedMs = this.#context.registry.now()
      for (const probes of running.probes.values()) probes.start()
      for (const { name, image } of running.runtimePod.pod.spec.containers) {
        const fieldPath = `spec.containers{${name}}`
        const pulled = `Container image "${image}" already present on machine`
        this.#record(running.runtimePod.pod, { reason: 'Pulled', message: pulled, fieldPath })
        this.#record(running.runtimePod.pod, { reason: 'Created', message: `Created container: ${name}`, fieldPath })
        this.#record(running.runtimePod.pod, { reason: 'Started', message: `Started container ${name}`, fieldPath })
      }
    } catch (error) {
      running.problem = messageOf(error)
      this.#context.log.error(error, 'A pod did not start', { pod: key })
      this.#record(running.runtimePod.pod, { type: 'Warning', reason: 'Failed', message: running.problem })
      if (running.stage === 'starting') {
        this.#context.clock.setTimeout(() => {
          if (this.#running.get(key) === running && running.stage === 'starting')
            void this.#launch(key, running, failure)
        }, retryMs)
      }
    }
    this.#writeStatus(key, running)
    this.#queue.add(key)
  }

  #probesOf(key: string, running: Running, container: Container): ContainerProbes {
    const { runtime } = this.#options
    const fieldPath = `spec.containers{${container.name}}`
    return new ContainerProbes({
      container,
      clock: this.#context.clock,
      run: (probe) => runtime.probe(running.runtimePod, container, probe),
      onChange: () => this.#writeStatus(key, running),
      onFailure: (kind, message) => {
        const sentence = `${capitalized(kind)} probe failed: ${message}`
        this.#record(running.runtimePod.pod, { type: 'Warning', reason: 'Unhealthy', message: sentence, fieldPath })
      },
      onFatal: (kind) => {
        const sentence = `Container ${container.name} failed ${kind} probe, will be restarted`
        this.#record(running.runtimePod.pod, { reason: 'Killing', message: sentence, fieldPath })
        void this.#restart(key, running)
      },
    })
  }

  /** All containers share what runs in the pod, and so their restarts. */
  async #restart(key: string, running: Running): Promise<void> {
    for (const probes of running.probes.values()) probes.stop()
    try {
      await this.#options.runtime.restart(running.runtimePod)
    } catch (error) {
      this.#context.log.error(error, 'A pod did not start again', { pod: key })
    }
    if (running.stage !== 'running') return
    running.restarts++
    running.startedMs = this.#context.registry.now()
    for (const probes of running.probes.values()) probes.start()
    this.#writeStatus(key, running)
  }

  /** A running pod whose object changed: readiness or failure may have been asked for. */
  #follow(key: string, pod: Pod, running: Running): void {
    running.runtimePod = { ...running.runtimePod, pod }
    this.#writeStatus(key, running)
    const { failure } = requestedBehaviour(pod)
    if (running.stage !== 'running' || running.changing || failure === running.failure) return
    running.changing = true
    void this.#change(key, running, failure)
  }

  async #change(key: string, running: Running, failure: FailureMode): Promise<void> {
    try {
      await this.#options.runtime.setFailure(running.runtimePod, failure)
      if (failure === 'die' && running.failure !== 'die') {
        running.restarts++
        this.#record(running.runtimePod.pod, {
          type: 'Warning',
          reason: 'BackOff',
          message: 'Back-off restarting failed container',
        })
      }
      if (running.failure === 'die') running.startedMs = this.#context.registry.now()
      running.failure = failure
    } catch (error) {
      this.#context.log.error(error, 'A pod could not be made to fail as asked', { pod: key, failure })
      this.#queue.addAfter(key, retryMs)
    }
    running.changing = false
    this.#writeStatus(key, running)
    this.#queue.add(key)
  }

  #drain(key: string, pod: Pod, running: Running | undefined): void {
    const { registry } = this.#context
    if (running === undefined || running.stage === 'stopped') {
      this.#finish(key, pod)
      return
    }
    if (running.stage === 'stopping') return
    const graceSeconds = pod.metadata.deletionGracePeriodSeconds ?? 0
    if (running.drainUntilMs === undefined) {
      for (const { name } of pod.spec.containers) {
        this.#record(pod, {
          reason: 'Killing',
          message: `Stopping container ${name}`,
          fieldPath: `spec.containers{${name}}`,
        })
      }
    }
    const seconds = Math.min(graceSeconds, drainSeconds(pod) ?? this.#options.drainSeconds)
    // Deleting again can only shorten it.
    running.drainUntilMs = Math.min(running.drainUntilMs ?? Infinity, registry.now() + seconds * 1000)
    const leftMs = running.drainUntilMs - registry.now()
    if (leftMs > 0) this.#queue.addAfter(key, leftMs)
    else this.#stop(key, running, Math.max(0, graceSeconds - seconds))
  }

  #stop(key: string, running: Running, graceSeconds: number): void {
    if (running.stage === 'stopping' || running.stage === 'stopped') return
    for (const probes of running.probes.values()) probes.stop()
    running.stage = 'stopping'
    const done = (): void => {
      running.stage = 'stopped'
      const pod = this.#context.registry.collection(pods).get(key)?.object
      if (pod?.metadata.uid === running.uid) {
        if (isDeleting(pod)) this.#finish(key, pod)
      } else if (this.#running.get(key) === running) {
        this.#forget(key)
      }
      this.#queue.add(key)
    }
    this.#options.runtime.stop(running.runtimePod, graceSeconds).then(done, (error: unknown) => {
      this.#context.log.error(error, 'A pod did not stop', { pod: key })
      done()
    })
  }

  #forget(key: string): void {
    const { runtimePod } = this.#running.get(key) ?? {}
    if (runtimePod?.hostNetwork === false) this.#addresses.release(runtimePod.ips)
    this.#running.delete(key)
  }

  /** The last word of a kubelet: delete without grace. */
  #finish(key: string, pod: Pod): void {
    this.#forget(key)
    const { registry } = this.#context
    if ((pod.metadata.finalizers ?? []).length > 0 && pod.metadata.deletionGracePeriodSeconds === 0) return
    registry.delete(pods, placeOf(key), { gracePeriodSeconds: 0, preconditions: { uid: pod.metadata.uid ?? '' } })
  }

  #writeStatus(key: string, running: Running): void {
    const { registry } = this.#context
    const { runtimePod, failure, problem, startedMs, restarts } = running
    const node = registry.find(nodes, { name: runtimePod.nodeName })?.object
    const stage = running.stage === 'starting' ? 'creating' : failure === 'die' ? 'dead' : 'running'
    const current = registry.collection(pods).get(key)?.object
    if (current?.metadata.uid !== running.uid) return
    const facts = {
      ips: runtimePod.ips,
      hostIps: node === undefined ? [] : hostAddresses(node),
      stage,
      problem,
      probed: (name: string) => running.probes.get(name) ?? { isStarted: true, isReady: true },
      startedMs,
      restarts,
      nowMs: registry.now(),
    } as const
    registry.modify(pods, placeOf(key), (draft) => setPodStatus(draft, facts), 'status')
  }

  #record(pod: Pod, event: { type?: 'Normal' | 'Warning'; reason: string; message: string; fieldPath?: string }): void {
    if (this.#context.registry.collection(pods).get(`${pod.metadata.namespace}/${pod.metadata.name}`) === undefined)
      return
    const host = pod.spec.nodeName
    this.#context.events.record(pod, { ...event, source: 'kubelet', ...(host === undefined ? {} : { host }) })
  }
}

function capitalized(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`
}

/** How long the first preStop hook sleeps: the API's own way to serve on after a deletion. */
function drainSeconds({ spec }: Pod): number | undefined {
  for (const { lifecycle } of spec.containers) {
    const { preStop } = (lifecycle ?? {}) as { preStop?: { sleep?: { seconds?: number } } }
    if (preStop?.sleep?.seconds !== undefined) return preStop.sleep.seconds
  }
  return undefined
}
