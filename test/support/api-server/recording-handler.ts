// A handler that notes everything it is told, and the state that follows from it.

import type { ResourceHandler, ObjectEvent } from '../../../src/kube/resource-handler.ts'
import { patience } from '../patience.ts'

export class RecordingHandler<T> implements ResourceHandler<T> {
  /** What a consumer would believe to be true. */
  readonly objects = new Map<string, T>()
  readonly batches: (readonly ObjectEvent<T>[])[] = []
  /** `synced`, `available`, `unavailable: why`, in order. */
  readonly notices: string[] = []

  onEvents(events: readonly ObjectEvent<T>[]): void {
    this.batches.push(events)
    for (const event of events) {
      if (event.type === 'set') this.objects.set(event.key, event.object)
      else this.objects.delete(event.key)
    }
  }

  onSynced(): void {
    this.#notice('synced')
  }

  onAvailable(): void {
    this.#notice('available')
  }

  onUnavailable(error: Error): void {
    this.#notice(`unavailable: ${error.message}`)
  }

  get keys(): string[] {
    return [...this.objects.keys()].sort()
  }

  /** Events as `set key` and `delete key`, all batches joined. */
  get events(): string[] {
    return this.batches.flat().map(({ type, key }) => `${type} ${key}`)
  }

  get isSynced(): boolean {
    return this.notices.includes('synced')
  }

  get isAvailable(): boolean {
    return this.notices.findLast((notice) => notice !== 'synced') === 'available'
  }

  /** Forgets what was told, not what follows from it. */
  clear(): void {
    this.batches.length = 0
    this.notices.length = 0
  }

  #notice(notice: string): void {
    this.notices.push(notice)
  }
}

/** Waits until the condition holds; says what was waited for when it never does. The time is that of an idle machine. */
export async function until(what: string, condition: () => boolean, timeoutMs: number = 3000): Promise<void> {
  const startMs = performance.now()
  let busiest = 1
  while (!condition()) {
    busiest = Math.max(busiest, patience())
    if (performance.now() - startMs > timeoutMs * busiest) throw new Error(`Cannot wait any longer until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
