// Lists that are kept in order, changed one element at a time. Finding the place takes a few comparisons, however long the
// list is; making room there moves bytes, which at a million elements is still less work than what the caller does.

/** Negative when `a` comes first, 0 when they are the same element. */
export type Compare<T> = (a: T, b: T) => number

/** A list that grew in place has room for 16 more. Short ones are many, so they are copied instead. */
const SHORT = 16

/** The list with the element, or with it in place of the same one. The given list may have been changed: use the returned one. */
export function withElement<T>(list: readonly T[], element: T, compare: Compare<T>): readonly T[] {
  const at = placeOf(list, element, compare)
  const same = at < list.length && compare(list[at]!, element) === 0
  return spliced(list, at, same ? 1 : 0, element)
}

/** The list without the element. The given list may have been changed: use the returned one. */
export function withoutElement<T>(list: readonly T[], element: T, compare: Compare<T>): readonly T[] {
  const at = placeOf(list, element, compare)
  return at < list.length && compare(list[at]!, element) === 0 ? spliced(list, at, 1) : list
}

function spliced<T>(list: readonly T[], at: number, deleted: number, ...added: T[]): readonly T[] {
  if (list.length <= SHORT) return list.toSpliced(at, deleted, ...added)
  // Lists come from here only, and a caller that changes one gives up the old one.
  const own = list as T[]
  own.splice(at, deleted, ...added)
  return own
}

/** Where the element is, or would have to be: behind all that come before it. */
export function placeOf<T, E>(list: readonly T[], element: E, compare: (a: T, b: E) => number): number {
  let low = 0
  let high = list.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (compare(list[middle]!, element) < 0) low = middle + 1
    else high = middle
  }
  return low
}
