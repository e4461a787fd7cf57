// One copy of each string that very many objects repeat: node names, zones, service names.

/** Beyond this many, sharing starts anew: names that no object has any longer must not be kept for ever. */
const MOST = 100_000

export class SharedStrings {
  readonly #strings = new Map<string, string>()
  readonly #lists = new Map<string, readonly string[]>()

  /** The same string, at the place in memory where it was first seen. */
  get(text: string): string {
    const known = this.#strings.get(text)
    if (known !== undefined) return known
    if (this.#strings.size >= MOST) this.#strings.clear()
    this.#strings.set(text, text)
    return text
  }

  /** A list with the same strings. It must not be changed. */
  getList(list: readonly string[]): readonly string[] {
    const id = list.length === 1 ? (list[0] ?? '') : JSON.stringify(list)
    const known = this.#lists.get(id)
    if (known !== undefined && known.length === list.length) return known
    if (this.#lists.size >= MOST) this.#lists.clear()
    const kept = list.map((text) => this.get(text))
    this.#lists.set(id, kept)
    return kept
  }
}
