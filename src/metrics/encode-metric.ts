// Metrics in Prometheus's protobuf format: messages of io.prometheus.client, field by field as Go's client writes them.
//
// ProtoWriter fills its buffer from the end, so what comes first is written last.

import { ProtoWriter } from '../lib/proto-writer.ts'
import { ZERO_THRESHOLD, type NativeBuckets, type Spans } from './native-buckets.ts'
import type { Kind } from './registry.ts'

const TYPES: Readonly<Record<Kind, number>> = { counter: 0, gauge: 1, histogram: 4 }

/** The fields of a MetricFamily before its metrics. */
export function encodeFamily(kind: Kind, name: string, help: string): Uint8Array {
  const writer = new ProtoWriter(256)
  writer.int(3, TYPES[kind])
  writer.string(2, help)
  writer.string(1, name)
  return writer.finish()
}

/** What stands in front of a message in a stream of them. */
export function encodeLength(length: number): Uint8Array {
  const writer = new ProtoWriter(8)
  writer.varint(length)
  return writer.finish()
}

/** A Metric of a MetricFamily. `labels` are pairs of name and value, ordered by name. */
export function encodeMetric(
  writer: ProtoWriter,
  labels: readonly (readonly [name: string, value: string])[],
  encodeValue: (writer: ProtoWriter) => void,
): void {
  const start = writer.length
  encodeValue(writer)
  for (const [name, value] of labels.toReversed()) {
    const pair = writer.length
    writer.string(2, value)
    writer.string(1, name)
    writer.message(1, pair)
  }
  writer.message(4, start)
}

export function encodeCounter(writer: ProtoWriter, value: number, createdMs: number | undefined): void {
  const start = writer.length
  if (createdMs !== undefined) encodeTime(writer, 3, createdMs)
  writer.double(1, value)
  writer.message(3, start)
}

export function encodeGauge(writer: ProtoWriter, value: number): void {
  const start = writer.length
  writer.double(1, value)
  writer.message(2, start)
}

export interface EncodableHistogram {
  readonly createdMs: number
  readonly count: number
  readonly sum: number
  readonly bounds: readonly number[]
  /** Observations per bucket, not cumulated; the last is for those beyond every bound. */
  readonly counts: readonly number[]
  /** Undefined: classic buckets alone. */
  readonly native: NativeBuckets | undefined
}

export function encodeHistogram(writer: ProtoWriter, histogram: EncodableHistogram): void {
  const { createdMs, count, sum, bounds, counts, native } = histogram
  const start = writer.length
  encodeTime(writer, 15, createdMs)
  if (native !== undefined) encodeNative(writer, native)
  let total = count - counts.at(-1)!
  for (let i = bounds.length - 1; i >= 0; i--) {
    const bucket = writer.length
    writer.double(2, bounds[i]!)
    writer.int(1, total)
    writer.message(3, bucket)
    total -= counts[i]!
  }
  writer.double(2, sum)
  writer.int(1, count)
  writer.message(7, start)
}

function encodeNative(writer: ProtoWriter, native: NativeBuckets): void {
  encodeSpans(writer, native.positive, { spans: 12, deltas: 13 })
  encodeSpans(writer, native.negative, { spans: 9, deltas: 10 })
  writer.int(7, native.zeroCount)
  writer.double(6, ZERO_THRESHOLD)
  writer.int(5, zigzag(native.schema))
}

function encodeSpans(
  writer: ProtoWriter,
  { spans, deltas }: Spans,
  fields: { readonly spans: number; readonly deltas: number },
): void {
  for (const delta of deltas.toReversed()) writer.int(fields.deltas, zigzag(delta))
  for (const { offset, length } of spans.toReversed()) {
    const span = writer.length
    writer.int(2, length)
    writer.int(1, zigzag(offset))
    writer.message(fields.spans, span)
  }
}

/** A google.protobuf.Timestamp, which leaves out what is 0. */
function encodeTime(writer: ProtoWriter, field: number, ms: number): void {
  const start = writer.length
  const seconds = Math.floor(ms / 1000)
  const nanos = Math.round((ms - seconds * 1000) * 1e6)
  if (nanos !== 0) writer.int(2, nanos)
  if (seconds !== 0) writer.int(1, seconds)
  writer.message(field, start)
}

/** Small numbers of either sign as small numbers. */
function zigzag(value: number): number {
  return value >= 0 ? 2 * value : -2 * value - 1
}
