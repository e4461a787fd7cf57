// Looks at the connections through Services, while it is open: the kernel reports connections only while a program listens.

import { readFileSync } from 'node:fs'
import { Conntrack } from '../conntrack/driver.ts'
import { type EndEvent, watchEnds } from '../conntrack/watch-ends.ts'
import type { Clock, Timer } from '../lib/clock.ts'
import type { Logger } from '../lib/log.ts'
import { ServiceFinder } from '../model/service-finder.ts'
import type { ServicePortView } from '../model/types.ts'
import { FlowNames, type FlowNamesOptions } from './flow-names.ts'
import type { FlowRecord } from './flow-record.ts'
import { FlowTracker } from './flow-tracker.ts'

/** Who translates connections, and so what the connection tracker says of them. */
export type Translation = 'by rules' | 'by IPVS' | 'by relaying'

export interface FlowWatchOptions {
  /** The service ports of all families. */
  readonly views: () => ServicePortView[]
  readonly translation: Translation
  readonly names: Omit<FlowNamesOptions, 'clock'>
  readonly isWanted: (service: string) => boolean
  readonly onRecord: (record: FlowRecord) => void
  /** So many connections have no record, because there were too many. */
  readonly onLeftOut: (count: number) => void
  readonly clock: Clock
  readonly log: Logger
}

const TICK_MS = 1000
const ACCOUNTING = '/proc/sys/net/netfilter/nf_conntrack_acct'

export class FlowWatch {
  readonly #options: FlowWatchOptions
  readonly #services: ServiceFinder
  readonly #conntrack = new Conntrack()
  readonly #tracker: FlowTracker
  readonly names: FlowNames
  /** Whether the kernel counts bytes. */
  readonly counts = isOn(ACCOUNTING)
  readonly #watch: { close(): void }
  #timer: Timer | undefined
  #isClosed = false

  static async open(options: FlowWatchOptions): Promise<FlowWatch> {
    // Before the kernel is listened to: a connection to what is not known yet would be taken for one to no Service.
    const services = new ServiceFinder()
    await services.follow(options.views())
    return new FlowWatch(options, services)
  }

  private constructor(options: FlowWatchOptions, services: ServiceFinder) {
    const { clock, translation, isWanted } = options
    this.#options = options
    this.#services = services
    this.names = new FlowNames({ ...options.names, clock })
    this.#tracker = new FlowTracker({
      clock,
      serviceAt: (...frontend) => this.#services.at(...frontend),
      isWanted,
      onRecord: (record) => this.#record(record),
      counts: this.counts
        ? ({ family, protocol, original }) => this.#conntrack.counts(family, protocol, original)
        : undefined,
      isAnswered: (event) => this.#isAnswered(event),
      knowsBackends: translation !== 'by relaying',
    })
    try {
      this.#watch = watchEnds({
        onEvent: (event) => this.#tracker.add(event),
        onLost: () => this.#tracker.lost(),
        translatedOnly: translation !== 'by IPVS',
      })
    } catch (error) {
      this.#conntrack.close()
      throw error
    }
    this.#wait()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#watch.close()
    this.#conntrack.close()
  }

  #wait(): void {
    this.#timer = this.#options.clock.setTimeout(() => void this.#tick(), TICK_MS)
  }

  async #tick(): Promise<void> {
    await this.#services.follow(this.#options.views())
    if (this.#isClosed) return
    this.#tracker.tick()
    const leftOut = this.#tracker.takeLeftOut()
    if (leftOut > 0) this.#options.onLeftOut(leftOut)
    this.#wait()
  }

  #record(record: FlowRecord): void {
    if (record.event === 'begun') this.names.want(record)
    void this.names.look()
    this.#options.onRecord(record)
  }

  #isAnswered({ family, protocol, original, id }: EndEvent): boolean | undefined {
    const flow = this.#conntrack.lookUp(family, protocol, { original })
    return flow?.id === id ? flow.isAnswered : undefined
  }
}

function isOn(path: string): boolean {
  try {
    return readFileSync(path, 'utf8').trim() === '1'
  } catch {
    return false
  }
}
