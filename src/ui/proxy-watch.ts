// Reads one proxy over its control socket: its state now and then, and its changes while a page is open.

import { setTimeout as sleep } from 'node:timers/promises'
import type { ChangesAnswer } from '../serve/control/changes.ts'
import { ControlClient } from '../serve/control/client.ts'
import type { StateAnswer } from '../serve/control/state.ts'
import type { TrafficAnswer } from '../serve/control/traffic.ts'
import { knownFromState } from '../diagnose/explain/from-state.ts'
import type { Known } from '../diagnose/explain/known.ts'
import { messageOf } from '../lib/errors.ts'
import { modeNamed } from '../modes/all.ts'
import { dropsUnserved } from './drops-unserved.ts'
import { planRates } from './plan-rates.ts'
import type { ChangeEntry, NodeTraffic } from './protocol.ts'

export interface ProxyListener {
  /** Its state may have changed. */
  changed(): void
  synced(change: Omit<ChangeEntry, 'id'>): void
}

/** The state is read this often even without a sync: health and ejections may change. */
const STATE_MS = 2000
/** Reading takes at most one part in REST of the time: a large state is read less often. */
const REST = 10
const AWAY_MS = 300
const LONG_POLL_MS = 8000
const ASK_MS = 5000

export class ProxyWatch {
  readonly name: string
  readonly socket: string
  #state: StateAnswer | undefined
  #known: Known | undefined
  #error: string | undefined = 'not asked yet'
  #reading: Promise<void> | undefined
  #nextReadMs = 0
  #isStale = true
  /** While a page is open. */
  #looking: AbortController | undefined
  #trafficClient: ControlClient | undefined
  #counted: TrafficAnswer | undefined

  constructor(name: string, socket: string) {
    this.name = name
    this.socket = socket
  }

  get state(): StateAnswer | undefined {
    return this.#state
  }

  get known(): Known | undefined {
    return this.#known
  }

  /** The error of the last attempt. */
  get error(): string | undefined {
    return this.#error
  }

  /** Reads its state again, unless nothing has happened since the last time. */
  async refresh(): Promise<void> {
    if (this.#looking !== undefined && !this.#isStale && this.#error === undefined) return
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined))
    await this.#reading
  }

  /** Until end() is called. */
  begin(listener: ProxyListener): void {
    const looking = new AbortController()
    this.#looking = looking
    this.#isStale = true
    void this.#followChanges(listener, looking.signal)
    void this.#followState(listener, looking.signal)
  }

  end(): void {
    this.#looking?.abort()
    this.#looking = undefined
    this.#trafficClient?.close()
    this.#trafficClient = undefined
    this.#counted = undefined
  }

  /** The traffic since the last call. The proxy counts until end(). */
  async traffic(): Promise<NodeTraffic> {
    const client = (this.#trafficClient ??= new ControlClient(this.socket))
    const none = { node: this.name, overMs: 0, rows: [] }
    try {
      const after = await client.ask<TrafficAnswer>('traffic', { timeoutMs: ASK_MS })
      const before = this.#counted
      if (this.#looking !== undefined) this.#counted = after
      const ports = this.#state?.families.flatMap((family) => family.ports) ?? []
      return { node: this.name, ...planRates(before, after, dropsUnserved.bind(undefined, ports)) }
    } catch (error) {
      this.#counted = undefined
      client.close()
      if (this.#trafficClient === client) this.#trafficClient = undefined
      return { ...none, error: messageOf(error) }
    }
  }

  async #read(): Promise<void> {
    const waitMs = this.#nextReadMs - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    const startMs = performance.now()
    const client = new ControlClient(this.socket)
    this.#isStale = false
    try {
      const state = await client.ask<StateAnswer>('state', { timeoutMs: ASK_MS })
      this.#state = state
      this.#known = knownFromState(state, modeNamed)
      this.#error = undefined
    } catch (error) {
      this.#error = messageOf(error)
    } finally {
      client.close()
    }
    this.#nextReadMs = performance.now() + REST * Math.max(0, performance.now() - startMs - REST)
  }

  async #followChanges(listener: ProxyListener, signal: AbortSignal): Promise<void> {
    let client = new ControlClient(this.socket)
    let after = 0
    signal.addEventListener('abort', () => client.close())
    while (!signal.aborted) {
      const wait = after === 0 ? '0' : String(LONG_POLL_MS)
      try {
        const query = { after: String(after), wait }
        const answer = await client.ask<ChangesAnswer>('changes', { query, timeoutMs: LONG_POLL_MS + ASK_MS })
        if (signal.aborted) return
        for (const { number: _, ...change } of answer.changes) {
          listener.synced({ ...change, node: this.name, mode: answer.mode })
        }
        if (answer.changes.length > 0) this.#touch(listener)
        // Not in a hurry with a proxy that has done nothing yet.
        if (after === 0 && answer.last === 0) await sleep(AWAY_MS)
        after = answer.last
      } catch {
        client.close()
        if (signal.aborted) return
        this.#touch(listener)
        await sleep(AWAY_MS)
        // A new process counts from the start.
        after = 0
        client = new ControlClient(this.socket)
      }
    }
  }

  async #followState(listener: ProxyListener, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(STATE_MS, undefined, { signal }).catch(() => {})
      if (!signal.aborted) this.#touch(listener)
    }
  }

  #touch(listener: ProxyListener): void {
    this.#isStale = true
    listener.changed()
  }
}
