// Lists that mostly have one element. What push() makes of an empty list has room for 17, and there are very many of these lists.

/** The list with one more. The given list may have been changed: use the returned one. Begin with an empty list. */
export function growList<T>(list: readonly T[], element: T): readonly T[] {
  if (list.length === 0) return [element]
  // Lists come from here only, but for the empty one.
  ;(list as T[]).push(element)
  return list
}
