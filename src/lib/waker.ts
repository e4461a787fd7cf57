// Waiting for events that may come before the wait begins.

export class Waker {
  readonly #keepsProcess: boolean
  #isWoken = false
  #end: (() => void) | undefined

  /** `keepsProcess`: whether the process lives on for a wait. */
  constructor({ keepsProcess }: { readonly keepsProcess: boolean }) {
    this.#keepsProcess = keepsProcess
  }

  wake(): void {
    this.#isWoken = true
    this.#end?.()
  }

  /** Whether there was an event since the last call, or within `ms` from now. False when the signal is aborted. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (!this.#isWoken && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const end = () => {
          clearTimeout(timer)
          signal.removeEventListener('abort', end)
          resolve()
        }
        const timer = setTimeout(end, ms)
        if (!this.#keepsProcess) timer.unref()
        signal.addEventListener('abort', end)
        this.#end = end
      })
      this.#end = undefined
    }
    const wasWoken = this.#isWoken && !signal.aborted
    this.#isWoken = false
    return wasWoken
  }
}
