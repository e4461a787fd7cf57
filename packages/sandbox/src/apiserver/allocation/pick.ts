// Picking a free number out of a range.

export interface Range {
  readonly size: number
  isFree(offset: number): boolean
}

/** How many of the lowest numbers are left to services that ask for one by name, as long as others are free. */
export interface Band {
  readonly divisor: number
  readonly least: number
  readonly most: number
}

export const ipBand: Band = { divisor: 16, least: 16, most: 256 }
export const portBand: Band = { divisor: 32, least: 16, most: 128 }

/**
 * A free offset, at random, outside the lower band if possible; undefined when there is none. Names chosen by people are
 * usually low numbers: leaving those alone makes collisions rare.
 */
export function pickFree(range: Range, band: Band, random: () => number = Math.random): number | undefined {
  const reserved = reservedSize(range.size, band)
  return (
    pickWithin(range, reserved, { size: range.size - reserved, random }) ??
    pickWithin(range, 0, { size: reserved, random })
  )
}

function reservedSize(size: number, { divisor, least, most }: Band): number {
  if (size <= least) return 0
  return Math.min(most, Math.max(least, Math.floor(size / divisor)))
}

/** Steps that are tried one by one from a random start. Beyond it a range is as good as full. */
const longestSearch = 1 << 20

function pickWithin(
  range: Range,
  start: number,
  { size, random }: { size: number; random: () => number },
): number | undefined {
  if (size === 0) return undefined
  const first = Math.floor(random() * size)
  for (let i = 0; i < Math.min(size, longestSearch); i++) {
    const offset = start + ((first + i) % size)
    if (range.isFree(offset)) return offset
  }
  return undefined
}
