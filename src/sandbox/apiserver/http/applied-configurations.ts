import type { JsonObject } from '../json.ts'

/**
 * What each manager applied last to each object by server-side apply, so that what it leaves out the next time can be
 * taken out. It lives as long as the server does: after a restart the first apply removes nothing.
 */
export class AppliedConfigurations {
  readonly #byObject = new Map<string, Map<string, JsonObject>>()

  previous(uid: string, manager: string): JsonObject | undefined {
    return this.#byObject.get(uid)?.get(manager)
  }

  remember(uid: string, manager: string, applied: JsonObject): void {
    const managers = this.#byObject.get(uid) ?? new Map<string, JsonObject>()
    managers.set(manager, applied)
    this.#byObject.set(uid, managers)
  }

  forget(uid: string): void {
    this.#byObject.delete(uid)
  }
}
