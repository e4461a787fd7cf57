// What is counted: a counter, a gauge, a histogram. Writing to one is a field access or two.

import type { ProtoWriter } from '../lib/proto-writer.ts'
import { encodeCounter, encodeGauge, encodeHistogram } from './encode-metric.ts'
import { formatNumber } from './format-number.ts'
import { NativeBuckets } from './native-buckets.ts'

/** Receives one line: a suffix for the name, a label behind the others, the value. */
export type Emit = (suffix: string, lastLabel: string, value: number) => void

/** What a metric counts for one combination of label values. */
export interface Series {
  emit(emit: Emit): void
  /** The value of a Metric in Prometheus's protobuf format, the native buckets of a histogram only when they are asked for. */
  encode(writer: ProtoWriter, options: EncodeOptions): void
}

export interface EncodeOptions {
  readonly nativeHistograms: boolean
}

/** Only goes up. */
export class Counter implements Series {
  value = 0

  readonly #createdMs: number | undefined

  /** `createdMs` is undefined for a counter that counts since a time that is not known. */
  constructor(createdMs: number | undefined) {
    this.#createdMs = createdMs
  }

  inc(by = 1): void {
    this.value += by
  }

  emit(emit: Emit): void {
    emit('', '', this.value)
  }

  encode(writer: ProtoWriter): void {
    encodeCounter(writer, this.value, this.#createdMs)
  }
}

/** Goes up and down. */
export class Gauge implements Series {
  value = 0

  set(value: number): void {
    this.value = value
  }

  emit(emit: Emit): void {
    emit('', '', this.value)
  }

  encode(writer: ProtoWriter): void {
    encodeGauge(writer, this.value)
  }
}

/** Counts observations in buckets: the classic ones, whose bounds are given, and native ones. */
export class Histogram implements Series {
  sum = 0
  readonly #bounds: readonly number[]
  /** Observations per bucket, not cumulated; the last is for those beyond every bound. */
  readonly #counts: number[]
  readonly #native = new NativeBuckets()
  readonly #createdMs: number

  constructor(createdMs: number, bounds: readonly number[]) {
    this.#createdMs = createdMs
    this.#bounds = bounds
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    let bucket = 0
    // NaN is beyond every bound.
    while (bucket < this.#bounds.length && !(value <= this.#bounds[bucket]!)) bucket++
    this.#counts[bucket]!++
    this.sum += value
    this.#native.observe(value)
  }

  /** How many observations there were. */
  get count(): number {
    return this.#counts.reduce((total, count) => total + count, 0)
  }

  emit(emit: Emit): void {
    let total = 0
    for (const [index, bound] of this.#bounds.entries()) {
      total += this.#counts[index]!
      emit('_bucket', `le="${formatNumber(bound)}"`, total)
    }
    total += this.#counts.at(-1)!
    emit('_bucket', 'le="+Inf"', total)
    emit('_sum', '', this.sum)
    emit('_count', '', total)
  }

  encode(writer: ProtoWriter, { nativeHistograms }: EncodeOptions): void {
    encodeHistogram(writer, {
      createdMs: this.#createdMs,
      count: this.count,
      sum: this.sum,
      bounds: this.#bounds,
      counts: this.#counts,
      native: nativeHistograms ? this.#native : undefined,
    })
  }
}
