// Server-Sent Events for the open pages. Without pages, no proxy gets a request.

import type { ServerResponse } from 'node:http'
import { diffValues } from './patch.ts'
import { MOST_CHANGES, type ChangeEntry, type LoadReport, type Snapshot, type UiEvents } from './protocol.ts'
import type { UiSource } from './source.ts'

const MOST_PAGES = 16
const SNAPSHOT_MS = 200
const TRAFFIC_MS = 1000
/** HTTP proxies and laptops cut off silent connections. */
const HEARTBEAT_MS = 15_000
/** A page that does not read this much is disconnected. */
const MOST_UNREAD = 4 * 1024 * 1024

export class EventStreams {
  readonly #source: UiSource
  readonly #pages = new Set<ServerResponse>()
  #changes: ChangeEntry[] = []
  #id = 0
  #snapshotTimer: NodeJS.Timeout | undefined
  #trafficTimer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #lastSnapshotMs = 0
  #isMaking = false
  #isStale = false
  /** The snapshot that the subscribers have. */
  #shown: Snapshot | undefined
  /** The pages that have a snapshot, and get differences from then on. */
  readonly #subscribers = new Set<ServerResponse>()

  constructor(source: UiSource) {
    this.#source = source
  }

  get size(): number {
    return this.#pages.size
  }

  get isFull(): boolean {
    return this.#pages.size >= MOST_PAGES
  }

  /** Sends events to a page until it disconnects. The headers have not been sent. */
  async add(response: ServerResponse): Promise<void> {
    response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' })
    response.on('error', () => {})
    response.once('close', () => this.#remove(response))
    this.#pages.add(response)
    if (this.#pages.size === 1) this.#begin()
    const snapshot = await this.#source.snapshot()
    if (!this.#pages.has(response)) return
    this.#show(snapshot)
    this.#sendTo(response, 'snapshot', this.#shown!)
    this.#subscribers.add(response)
    for (const change of this.#changes) this.#sendTo(response, 'change', change)
  }

  /** Ends the streams. */
  close(reason: string): void {
    for (const page of this.#pages) {
      this.#sendTo(page, 'end', { reason })
      page.end()
    }
    this.#pages.clear()
    this.#subscribers.clear()
    this.#end()
  }

  #remove(response: ServerResponse): void {
    this.#subscribers.delete(response)
    if (this.#pages.delete(response) && this.#pages.size === 0) this.#end()
  }

  #begin(): void {
    this.#source.begin({
      changed: () => this.#schedule(),
      synced: (change) => this.#addChange(change),
      loaded: (report: LoadReport) => this.#send('load', report),
    })
    this.#trafficTimer = setInterval(() => void this.#sendTraffic(), TRAFFIC_MS)
    this.#heartbeat = setInterval(() => {
      for (const page of this.#pages) page.write(':\n\n')
    }, HEARTBEAT_MS)
  }

  #end(): void {
    this.#source.end()
    clearInterval(this.#trafficTimer)
    clearInterval(this.#heartbeat)
    clearTimeout(this.#snapshotTimer)
    this.#snapshotTimer = undefined
    this.#shown = undefined
  }

  /** Ignores a change that an earlier page has caused to be sent. */
  #addChange(change: Omit<ChangeEntry, 'id'>): void {
    const isKnown = this.#changes.some(
      (each) =>
        each.node === change.node &&
        each.family === change.family &&
        each.doneMs === change.doneMs &&
        each.beganMs === change.beganMs,
    )
    if (isKnown) return
    const entry = { id: ++this.#id, ...change }
    this.#changes.push(entry)
    if (this.#changes.length > MOST_CHANGES) this.#changes.shift()
    this.#send('change', entry)
  }

  /** At most one snapshot in SNAPSHOT_MS, and one at a time. */
  #schedule(): void {
    this.#isStale = true
    if (this.#snapshotTimer !== undefined || this.#isMaking || this.#pages.size === 0) return
    const waitMs = Math.max(20, this.#lastSnapshotMs + SNAPSHOT_MS - performance.now())
    this.#snapshotTimer = setTimeout(() => {
      this.#snapshotTimer = undefined
      void this.#sendSnapshot()
    }, waitMs)
  }

  async #sendSnapshot(): Promise<void> {
    this.#isMaking = true
    this.#isStale = false
    try {
      const snapshot = await this.#source.snapshot()
      if (this.#pages.size > 0) this.#show(snapshot)
    } catch {
      // The source is closing; close() informs the pages.
    } finally {
      this.#isMaking = false
      this.#lastSnapshotMs = performance.now()
      if (this.#isStale) this.#schedule()
    }
  }

  /** Sends the difference to the subscribers. */
  #show(snapshot: Snapshot): void {
    const before = this.#shown
    const patch = before === undefined ? undefined : diffValues(before, snapshot)
    if (before !== undefined && patch === undefined) return
    this.#shown = snapshot
    if (patch === undefined) return
    const text = format('update', patch)
    for (const page of this.#subscribers) write(page, text)
  }

  async #sendTraffic(): Promise<void> {
    const report = await this.#source.traffic()
    this.#send('traffic', report)
  }

  #send<E extends keyof UiEvents>(event: E, data: UiEvents[E]): void {
    if (this.#pages.size === 0) return
    const text = format(event, data)
    for (const page of this.#pages) write(page, text)
  }

  #sendTo<E extends keyof UiEvents>(page: ServerResponse, event: E, data: UiEvents[E]): void {
    write(page, format(event, data))
  }
}

function format<E extends keyof UiEvents>(event: E, data: UiEvents[E]): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

function write(page: ServerResponse, text: string): void {
  if (page.writableLength > MOST_UNREAD) page.destroy()
  else page.write(text)
}
