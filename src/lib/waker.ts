// Waiting for events that may come before the wait begins.

export interface WakerOptions {
  /** Whether the process lives on for a wait. */
  readonly keepsProcess: boolean
}

export class Waker {
  readonly #options: WakerOptions
  #isWoken = false
  #end: (() => void) | undefined

  constructor(options: WakerOptions) {
    this.#options = options
  }

  wake(): void {
    this.#isWoken = true
    this.#end?.()
  }

  /** Whether there was an event since the last call, or within `ms` from now. False when the signal is aborted. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isWoken) await this.#pause(ms, signal, (end) => (this.#end = end))
    const wasWoken = this.#isWoken && !signal.aborted
    this.#isWoken = false
    this.#end = undefined
    return wasWoken
  }

  /** Waits for so long, whatever happens; what happens is for the next wait(). */
  pause(ms: number, signal: AbortSignal): Promise<void> {
    return this.#pause(ms, signal)
  }

  async #pause(ms: number, signal: AbortSignal, onWait?: (end: () => void) => void): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      if (!this.#options.keepsProcess) timer.unref()
      signal.addEventListener('abort', end)
      onWait?.(end)
    })
  }
}
