// The ports that the proxy itself listens on: healthz and metrics.

import { encodeToObject } from '../config/encode.ts'
import { featureEnabled } from '../config/feature-gates.ts'
import type { RunOptions } from '../config/run-options.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import type { EventReason } from '../kube/event-kinds.ts'
import { systemClock } from '../lib/clock.ts'
import { serveHealth } from '../serve/health-server.ts'
import type { Listener } from '../serve/listen.ts'
import { serveMetrics } from '../serve/metrics-server.ts'
import type { ProxyHealth } from '../serve/proxy-health.ts'
import type { Metrics } from '../metrics/metrics.ts'

export interface ServersOptions {
  readonly run: RunOptions
  readonly metrics: Metrics
  readonly health: ProxyHealth
  readonly mode: string
  /** What there is to say on /statusz besides. */
  readonly status: () => string
  /** A port cannot be bound; for an Event. */
  readonly onRefused: (reason: EventReason, note: string) => void
}

const REASONS = {
  healthz: 'FailedToStartProxierHealthcheck',
  metrics: 'FailedToStartMetricServer',
} as const satisfies Record<string, EventReason>

export class Servers {
  readonly #options: ServersOptions
  #config: KubeProxyConfiguration
  #health: Listener | undefined
  #metrics: Listener | undefined
  #fail: (error: Error) => void = () => {}

  constructor(options: ServersOptions) {
    this.#options = options
    this.#config = options.run.config
  }

  /** Rejects when a port cannot be bound that must be (bindAddressHardFail); never resolves. */
  open(config: KubeProxyConfiguration): Promise<never> {
    const failed = new Promise<never>((_, reject) => {
      this.#fail = reject
    })
    this.#config = config
    this.#openHealth()
    this.#openMetrics()
    return failed
  }

  /** Moves what listens elsewhere now. */
  reopen(config: KubeProxyConfiguration): void {
    const before = this.#config
    this.#config = config
    if (before.healthzBindAddress !== config.healthzBindAddress) {
      void this.#health?.close()
      this.#openHealth()
    }
    if (before.metricsBindAddress !== config.metricsBindAddress) {
      void this.#metrics?.close()
      this.#openMetrics()
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.#health?.close(), this.#metrics?.close()])
  }

  #openHealth(): void {
    const { health, metrics } = this.#options
    this.#health = serveHealth({
      ...this.#common('healthz', this.#config.healthzBindAddress),
      health,
      counters: metrics,
    })
  }

  #openMetrics(): void {
    const { run, metrics, mode, status } = this.#options
    const gates = this.#config.featureGates
    const version = run.version.replace(/^v/, '')
    this.#metrics = serveMetrics({
      ...this.#common('metrics', this.#config.metricsBindAddress),
      pages: {
        metrics,
        mode: () => mode,
        status,
        config: () => encodeToObject(this.#config),
        flags: featureEnabled(gates, 'ComponentFlagz')
          ? () => Object.fromEntries(run.flags.map(({ name, value }) => [name, value]))
          : undefined,
        version: featureEnabled(gates, 'ComponentStatusz')
          ? { binary: version, emulation: version.split('.').slice(0, 2).join('.') }
          : undefined,
        profiling: () => this.#config.enableProfiling,
        setVerbosity: (level) => (run.logSettings.verbosity = level),
        nowMs: () => systemClock.now(),
      },
    })
  }

  #common(name: keyof typeof REASONS, address: string) {
    const hard = this.#config.bindAddressHardFail
    return {
      address,
      whenRefused: hard ? ('give up' as const) : ('retry' as const),
      onRefused: (error: Error) => {
        this.#options.onRefused(REASONS[name], `Cannot serve ${name} on ${address}: ${error.message}`)
        if (hard) this.#fail(new Error(`Cannot serve ${name} on ${address}: ${error.message}`, { cause: error }))
      },
      clock: systemClock,
      log: this.#options.run.log,
    }
  }
}
