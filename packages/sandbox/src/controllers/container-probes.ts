// Runs the probes of one container: startup first, then readiness and liveness.

import { initialState, isFatal, nextState, type ProbeKind, type ProbeState } from './probe-state.ts'
import type { Clock, Timer } from '../../../../src/lib/clock.ts'
import type { Container, Probe } from '../apiserver/objects/pod.ts'
import type { ProbeResult } from './pod-runtime.ts'

export interface ContainerProbesOptions {
  readonly container: Container
  readonly clock: Clock
  run(probe: Probe): Promise<ProbeResult>
  /** The container became ready, or started, or no longer is. */
  onChange(): void
  onFailure(kind: ProbeKind, message: string): void
  /** The container has to be restarted. Nothing is probed until start(). */
  onFatal(kind: ProbeKind): void
}

export class ContainerProbes {
  readonly #options: ContainerProbesOptions
  readonly #probes: ReadonlyMap<ProbeKind, Probe>
  readonly #states = new Map<ProbeKind, ProbeState>()
  readonly #timers = new Map<ProbeKind, Timer>()
  /** Counts the lives of the container: a result that belongs to an earlier one means nothing. */
  #life = 0

  constructor(options: ContainerProbesOptions) {
    this.#options = options
    const { startupProbe, readinessProbe, livenessProbe } = options.container
    const all = { startup: startupProbe, readiness: readinessProbe, liveness: livenessProbe }
    this.#probes = new Map(
      (Object.entries(all) as [ProbeKind, Probe | undefined][]).flatMap(([kind, probe]) =>
        probe === undefined ? [] : [[kind, probe] as const],
      ),
    )
  }

  /** Without a probe a container is well as soon as it runs. */
  get isStarted(): boolean {
    return this.#states.get('startup')?.isGood ?? !this.#probes.has('startup')
  }

  get isReady(): boolean {
    return this.isStarted && (this.#states.get('readiness')?.isGood ?? !this.#probes.has('readiness'))
  }

  /** The container has just been started. */
  start(): void {
    this.stop()
    for (const kind of this.#probes.keys()) {
      this.#states.set(kind, initialState(kind))
      this.#schedule(kind, (this.#probes.get(kind)!.initialDelaySeconds ?? 0) * 1000)
    }
  }

  stop(): void {
    this.#life++
    for (const timer of this.#timers.values()) timer.cancel()
    this.#timers.clear()
    this.#states.clear()
  }

  #schedule(kind: ProbeKind, delayMs: number): void {
    this.#timers.get(kind)?.cancel()
    this.#timers.set(
      kind,
      this.#options.clock.setTimeout(() => void this.#probe(kind), delayMs),
    )
  }

  async #probe(kind: ProbeKind): Promise<void> {
    const probe = this.#probes.get(kind)!
    const life = this.#life
    // A container that has started needs no more of these; until then there are no others.
    if (kind === 'startup' && this.isStarted) return
    if (kind === 'startup' || this.isStarted) {
      const result = await this.#options.run(probe)
      if (life !== this.#life) return
      if (this.#take(kind, probe, result)) return
    }
    this.#schedule(kind, (probe.periodSeconds ?? 10) * 1000)
  }

  /** Whether the container's life ends with this result. */
  #take(kind: ProbeKind, probe: Probe, { isGood, message }: ProbeResult): boolean {
    const before = { isReady: this.isReady, isStarted: this.isStarted }
    const state = nextState(this.#states.get(kind) ?? initialState(kind), probe, isGood)
    this.#states.set(kind, state)
    if (!isGood) this.#options.onFailure(kind, message)
    if (isFatal(kind, probe, state)) {
      this.stop()
      this.#options.onFatal(kind)
      return true
    }
    if (before.isReady !== this.isReady || before.isStarted !== this.isStarted) this.#options.onChange()
    // The others have waited for this.
    if (!before.isStarted && this.isStarted) {
      for (const other of this.#probes.keys()) if (other !== 'startup') this.#schedule(other, 0)
    }
    return false
  }
}
