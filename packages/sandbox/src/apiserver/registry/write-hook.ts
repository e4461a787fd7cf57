import type { ApiObject } from '../objects/meta.ts'

/** What has to happen together with a write of some kind: numbers given out, books kept. */
export interface WriteHook<T extends ApiObject = ApiObject> {
  /**
   * Completes an object that is about to be written, or refuses it with an ApiError. What it returns is called when the
   * object has been stored, and not at all when it was only asked what would happen.
   */
  plan(next: T, current: T | undefined): () => void
  deleted(object: T): void
}
