// Reads Prometheus's protobuf format, of which it knows the numbers of the fields and nothing of our writer.

export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly metrics: readonly Sample[]
}

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  /** Of a counter or a gauge. */
  readonly value?: number
  readonly createdMs?: number
  readonly histogram?: DecodedHistogram
}

export interface DecodedHistogram {
  readonly count: number
  readonly sum: number
  /** Cumulated counts by upper bound. */
  readonly classic: readonly (readonly [bound: number, count: number])[]
  /** Undefined where only classic buckets were sent. */
  readonly native?: {
    readonly schema: number
    readonly zeroThreshold: number
    readonly zeroCount: number
    readonly positive: readonly (readonly [bucket: number, count: number])[]
    readonly negative: readonly (readonly [bucket: number, count: number])[]
  }
}

/** A stream of MetricFamily messages, each behind its length. */
export function decodeFamilies(bytes: Uint8Array): Family[] {
  const reader = new Reader(bytes)
  const families: Family[] = []
  while (!reader.atEnd) families.push(decodeFamily(reader.bytes()))
  return families
}

type Field = number | Uint8Array

function decodeFamily(bytes: Uint8Array): Family {
  const fields = fieldsOf(bytes)
  const type = ({ 0: 'counter', 1: 'gauge', 4: 'histogram' } as const)[fields.number(3)]
  if (type === undefined) throw new Error(`Cannot decode a family: type ${fields.number(3)}`)
  const metrics = fields.all(4).map((metric) => decodeSample(metric as Uint8Array))
  return { name: fields.text(1), help: fields.text(2), type, metrics }
}

function decodeSample(bytes: Uint8Array): Sample {
  const fields = fieldsOf(bytes)
  const labels = Object.fromEntries(
    fields.all(1).map((pair) => {
      const label = fieldsOf(pair as Uint8Array)
      return [label.text(1), label.text(2)]
    }),
  )
  if (fields.has(7)) {
    const histogram = fieldsOf(fields.message(7))
    return { labels, createdMs: decodeTime(histogram.message(15)), histogram: decodeHistogram(histogram) }
  }
  const value = fieldsOf(fields.message(fields.has(3) ? 3 : 2))
  return { labels, value: value.double(1), ...(value.has(3) && { createdMs: decodeTime(value.message(3)) }) }
}

function decodeHistogram(fields: Fields): DecodedHistogram {
  const classic = fields.all(3).map((bucket) => {
    const { double, number } = fieldsOf(bucket as Uint8Array)
    return [double(2), number(1)] as const
  })
  const counts = { count: fields.number(1), sum: fields.double(2), classic }
  if (!fields.has(5)) return counts
  const native = {
    schema: unzigzag(fields.number(5)),
    zeroThreshold: fields.double(6),
    zeroCount: fields.number(7),
    positive: decodeBuckets(fields.all(12), fields.all(13)),
    negative: decodeBuckets(fields.all(9), fields.all(10)),
  }
  return { ...counts, native }
}

/** Without the empty ones. */
function decodeBuckets(spans: readonly Field[], deltas: readonly Field[]): [bucket: number, count: number][] {
  const buckets: [number, number][] = []
  let key = 0
  let count = 0
  let i = 0
  for (const span of spans) {
    const { number } = fieldsOf(span as Uint8Array)
    key += unzigzag(number(1))
    for (let left = number(2); left > 0; left--) {
      count += unzigzag(deltas[i++] as number)
      if (count > 0) buckets.push([key, count])
      key++
    }
  }
  if (i !== deltas.length) throw new Error(`Cannot decode buckets: ${deltas.length} deltas for ${i} buckets`)
  return buckets
}

function decodeTime(bytes: Uint8Array): number {
  const { number } = fieldsOf(bytes)
  return number(1) * 1000 + number(2) / 1e6
}

function unzigzag(value: number): number {
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2
}

type Fields = ReturnType<typeof fieldsOf>

function fieldsOf(bytes: Uint8Array) {
  const reader = new Reader(bytes)
  const found = new Map<number, Field[]>()
  let last = 0
  while (!reader.atEnd) {
    const tag = reader.varint()
    const field = Math.floor(tag / 8)
    if (field < last) throw new Error(`Cannot decode a message: field ${field} comes after ${last}`)
    last = field
    if (!found.has(field)) found.set(field, [])
    found.get(field)!.push(reader.value(tag % 8))
  }
  const first = (field: number) => found.get(field)?.[0]
  return {
    has: (field: number) => found.has(field),
    all: (field: number) => found.get(field) ?? [],
    number: (field: number) => (first(field) ?? 0) as number,
    double: (field: number) => {
      const value = first(field) as Uint8Array
      return new DataView(value.buffer, value.byteOffset).getFloat64(0, true)
    },
    message: (field: number) => (first(field) ?? new Uint8Array()) as Uint8Array,
    text: (field: number) => new TextDecoder().decode(first(field) as Uint8Array),
  }
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  varint(): number {
    let value = 0
    for (let unit = 1; ; unit *= 128) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) throw new Error('Cannot decode a message: it is cut off')
      value += (byte & 127) * unit
      if (byte < 128) return value
    }
  }

  /** A varint as a number, eight bytes and what has a length as bytes. */
  value(wireType: number): Field {
    if (wireType === 0) return this.varint()
    if (wireType === 1) return this.#take(8)
    if (wireType === 2) return this.bytes()
    throw new Error(`Cannot decode a message: wire type ${wireType}`)
  }

  bytes(): Uint8Array {
    return this.#take(this.varint())
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new Error('Cannot decode a message: it is cut off')
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}
