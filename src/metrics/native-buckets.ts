// The buckets of a native histogram: as many as there are sizes of values, a factor apart, found by arithmetic. As Go's
// client counts them with the settings of Kubernetes: a factor of at most 1.1 and 160 buckets.

/** Eight buckets between a power of two and the next: each 9 % wider than the one before. */
const FINEST_SCHEMA = 3
/** Buckets 65,536 times as wide as the one before. */
const COARSEST_SCHEMA = -4
const MAX_BUCKETS = 160

/** Up to here, either side of 0, a value counts as 0. */
export const ZERO_THRESHOLD = 2 ** -128

/** Where the buckets between 0.5 and 1 begin. Go's own numbers: a value on a bound is counted in the bucket below. */
const BOUNDS = [
  0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048, 0.7071067811865475, 0.7711054127039704,
  0.8408964152537144, 0.9170040432046711,
] as const

/** Counts by the number of the bucket. Bucket 0 ends with 1, the one before 1 factor below. */
type Buckets = Map<number, number>

/** Runs of buckets that follow one another, and the count of each as the difference to the one before. */
export interface Spans {
  readonly spans: readonly { readonly offset: number; readonly length: number }[]
  readonly deltas: readonly number[]
}

export class NativeBuckets {
  /** Each step merges two buckets into one. */
  schema = FINEST_SCHEMA
  zeroCount = 0
  #positive: Buckets = new Map()
  #negative: Buckets = new Map()

  observe(value: number): void {
    if (Number.isNaN(value)) return
    const size = Math.abs(value)
    if (size <= ZERO_THRESHOLD) {
      this.zeroCount++
      return
    }
    const buckets = value > 0 ? this.#positive : this.#negative
    const key = Math.ceil(finestBucket(size) / 2 ** (FINEST_SCHEMA - this.schema))
    buckets.set(key, (buckets.get(key) ?? 0) + 1)
    if (this.#positive.size + this.#negative.size > MAX_BUCKETS && this.schema > COARSEST_SCHEMA) this.#merge()
  }

  get positive(): Spans {
    return planSpans(this.#positive)
  }

  get negative(): Spans {
    return planSpans(this.#negative)
  }

  /** Makes every bucket twice as wide. */
  #merge(): void {
    this.schema--
    this.#positive = merged(this.#positive)
    this.#negative = merged(this.#negative)
  }
}

const scratch = new DataView(new ArrayBuffer(8))

/** The number of the bucket in the finest schema, of a value beyond the zero threshold. */
function finestBucket(size: number): number {
  // Infinity has the bucket behind that of the largest number.
  if (size === Infinity) return finestBucket(Number.MAX_VALUE) + 1
  // size = fraction * 2 ** exponent, with a fraction from 0.5 to below 1.
  scratch.setFloat64(0, size)
  const high = scratch.getUint32(0)
  const exponent = (high >>> 20) - 1022
  scratch.setUint32(0, (high & 0xfffff) | (1022 << 20))
  const fraction = scratch.getFloat64(0)
  let index = 0
  while (index < BOUNDS.length && BOUNDS[index]! < fraction) index++
  return index + (exponent - 1) * BOUNDS.length
}

function merged(buckets: Buckets): Buckets {
  const wider: Buckets = new Map()
  for (const [key, count] of buckets) {
    const into = Math.ceil(key / 2)
    wider.set(into, (wider.get(into) ?? 0) + count)
  }
  return wider
}

/** Gaps of one or two buckets are written as empty buckets, which takes less than another run. */
const SMALL_GAP = 2

function planSpans(buckets: Buckets): Spans {
  const spans: { offset: number; length: number }[] = []
  const deltas: number[] = []
  let next = 0
  let before = 0
  const add = (span: { length: number }, count: number) => {
    span.length++
    deltas.push(count - before)
    before = count
  }
  for (const key of [...buckets.keys()].sort((a, b) => a - b)) {
    const gap = key - next
    let span = spans.at(-1)
    if (span === undefined || gap > SMALL_GAP) spans.push((span = { offset: gap, length: 0 }))
    else for (let i = 0; i < gap; i++) add(span, 0)
    add(span, buckets.get(key)!)
    next = key + 1
  }
  return { spans, deltas }
}
