// The version of each delivered object: enough to deliver only the differences after a new list.

export class KnownVersions {
  readonly #versions = new Map<string, string | number>()
  /** The keys of the list that is being read; undefined if nothing was known before it. */
  #listed: Set<string> | undefined

  /** False when this version is known. */
  set(key: string, resourceVersion: string): boolean {
    const version = compactVersion(resourceVersion)
    if (this.#versions.get(key) === version) return false
    this.#versions.set(key, version)
    return true
  }

  /** False when the object was not known. */
  delete(key: string): boolean {
    return this.#versions.delete(key)
  }

  /** Returns the keys that were known. */
  forgetAll(): string[] {
    const keys = [...this.#versions.keys()]
    this.#versions.clear()
    return keys
  }

  /** The server counts from another version: equal versions no longer mean equal objects. */
  doubt(): void {
    for (const key of this.#versions.keys()) this.#versions.set(key, '')
  }

  startList(): void {
    this.#listed = this.#versions.size === 0 ? undefined : new Set()
  }

  /** set() for an object of the list. */
  list(key: string, resourceVersion: string): boolean {
    if (this.#listed === undefined) {
      // Nothing was known before: no lookup is needed.
      this.#versions.set(key, compactVersion(resourceVersion))
      return true
    }
    this.#listed.add(key)
    return this.set(key, resourceVersion)
  }

  /** The list is complete: removes and returns the objects that are not in it. */
  finishList(): string[] {
    const gone: string[] = []
    const listed = this.#listed
    this.#listed = undefined
    if (listed === undefined || listed.size === this.#versions.size) return gone
    for (const key of this.#versions.keys()) {
      if (!listed.has(key)) gone.push(key)
    }
    for (const key of gone) this.#versions.delete(key)
    return gone
  }
}

/** Versions are decimal numbers in every Kubernetes, and numbers take less memory. Anything else stays a text. */
function compactVersion(resourceVersion: string): string | number {
  return /^[1-9]\d{0,14}$/.test(resourceVersion) ? Number(resourceVersion) : resourceVersion
}

/**
 * Whether `a` is an older resource version than `b`: as decimal numbers, which they are in every Kubernetes. Anything else is
 * not older.
 */
export function isOlderVersion(a: string, b: string): boolean {
  if (!/^\d+$/.test(a) || !/^\d+$/.test(b)) return false
  return a.length === b.length ? a < b : a.length < b.length
}
