import type { FieldType, NftSet } from './types.ts'

/** A set: of plain elements, unless the options say otherwise. */
export function makeSet(
  name: string,
  key: readonly FieldType[],
  options: Partial<Omit<NftSet, 'name' | 'key'>> = {},
): NftSet {
  const defaults = {
    data: undefined,
    interval: false,
    dynamic: false,
    timeoutMs: undefined,
    size: undefined,
    comment: undefined,
  }
  return { name, key, ...defaults, ...options }
}
