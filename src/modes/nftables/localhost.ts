// Node ports on 127.0.0.1 and ::1 on this machine: a thread that relays, the listeners of each family, and their metrics.

import { LocalhostListeners } from './localhost-listeners.ts'
import { countRefused } from './plan/localhost.ts'
import { CHAINS, TABLE } from './plan/names.ts'
import type { ModeOptions } from '../contract.ts'
import type { Programmer, ProgrammerReports } from '../../reconcile/programmer.ts'
import { acquireDataPath } from '../../data-path/data-path.ts'
import type { Family } from '../../lib/ip.ts'
import { localhostMetrics } from '../../metrics/kube-proxy.ts'
import { NftablesDriver } from '../../nftables/driver.ts'
import { nftFamily } from '../../nftables/language.ts'
import { raiseFdLimit } from '../../system/fd-limit.ts'

/** Few clients are on the node itself, and each thread costs memory. */
const THREADS = 1

export class LocalhostNodePorts {
  readonly #options: ModeOptions
  readonly #dataPath: ReturnType<typeof acquireDataPath>
  readonly #families = new Map<Family, LocalhostListeners>()
  #failures: ReturnType<typeof localhostMetrics>['failures'] | undefined

  constructor(options: ModeOptions) {
    this.#options = options
    const { udpIdleTimeoutMs } = options.config.userspace
    const settings = { portRange: '', udpIdleTimeoutMs, threads: THREADS }
    this.#dataPath = acquireDataPath(settings, (message) => options.log.warn(message))
    raiseFdLimit()
  }

  /** The same programmer; what it has programmed is listened for. */
  following(programmer: Programmer, family: Family, { metrics, onRefused }: ProgrammerReports): Programmer {
    const { log, clock } = this.#options
    this.#failures ??= this.#register(metrics)
    const failures = this.#failures.with(`IPv${family}`)
    const { plane, listeners } = this.#dataPath
    const followed = new LocalhostListeners({
      listeners: listeners[family],
      settle: () => plane.settle(),
      clock,
      onFailed: ({ servicePort, reason, isNews }) => {
        failures.inc()
        if (!isNews) return
        log.error(undefined, 'Cannot listen for a node port on localhost, trying again', { servicePort, reason })
        onRefused(servicePort, `no listener on localhost: ${reason}`)
      },
    })
    this.#families.set(family, followed)
    return {
      async sync(node, changes) {
        const stats = await programmer.sync(node, changes)
        followed.sync(node, changes)
        return stats
      },
      async syncAll(node, views) {
        const stats = await programmer.syncAll(node, views)
        followed.syncAll(node, views)
        return stats
      },
      finish: async () => programmer.finish?.(),
      close() {
        followed.close()
        programmer.close()
      },
    }
  }

  /** For people. */
  status(): string {
    const lines = Array.from(this.#families, ([family, followed]) => [
      `Node ports on localhost, IPv${family}: listeners=${followed.open}`,
      ...followed.failures().map((failure) => `  ${failure}`),
    ])
    return lines.flat().join('\n')
  }

  close(): void {
    this.#dataPath.release()
  }

  #register(metrics: ProgrammerReports['metrics']): ReturnType<typeof localhostMetrics>['failures'] {
    const { listeners, failures, rejected } = localhostMetrics({
      listeners: () => Array.from(this.#families, ([family, { open }]) => [[`IPv${family}`], open] as const),
      rejected: () => this.#options.families.flatMap(readRejected),
    })
    metrics.register(listeners, failures, rejected)
    return failures
  }
}

function readRejected(family: Family): (readonly [labels: readonly [string, string], value: number])[] {
  using driver = new NftablesDriver({ family: nftFamily(family), table: TABLE })
  const rules = driver.readRules(CHAINS.refuseLocalhost)
  return countRefused(rules).map(([protocol, packets]) => [[`IPv${family}`, protocol], packets])
}
