// Metrics with their series, and the pages that Prometheus reads: text, or protobuf.
//
// Our own because it is small and always loaded: the usual package costs 30 ms of start-up and 12 MB of memory.
// Writing to a metric is a lookup and a field access. All other work is left to the scrape.

import { ProtoWriter } from '../lib/proto-writer.ts'
import { encodeFamily, encodeLength, encodeMetric } from './encode-metric.ts'
import { formatNumber } from './format-number.ts'
import { Counter, Gauge, Histogram, type EncodeOptions, type Series } from './series.ts'

/** How firmly Kubernetes promises to keep a metric; printed in front of its help text. */
export type Stability = 'ALPHA' | 'BETA' | 'STABLE'

export interface MetricDefinition<Labels extends readonly string[]> {
  readonly name: string
  readonly help: string
  readonly labels: Labels
  readonly stability?: Stability
}

/** One value per label, in the order in which the labels were defined. */
export type LabelValues<Labels extends readonly string[]> = { readonly [Index in keyof Labels]: string }

export type Kind = 'counter' | 'gauge' | 'histogram'

/** Of one metric, printed at a time. */
const SERIES_IN_PART = 512
/** So many characters, or bytes, are a part of a page: that of a proxy that shows no traffic is one. */
const PART_LENGTH = 64 * 1024

/** A metric of any kind, as a registry sees it. */
export interface Printable {
  readonly name: string
  readonly kind: Kind
  readonly labels: readonly string[]
  readonly help: string
  /** Its lines, so many at a time; none while it has no series. */
  parts(): Iterable<string>
  /** A MetricFamily of Prometheus's protobuf format, so much of it at a time; nothing while it has no series. */
  encoded(options: EncodeOptions): Iterable<Uint8Array>
  /** Forgets every series. */
  reset(): void
}

/** A metric with its series, one per combination of label values. */
export class Metric<Labels extends readonly string[], S extends Series> implements Printable {
  readonly kind: Kind
  readonly #header: string
  readonly #definition: MetricDefinition<Labels>
  readonly #create: (createdMs: number) => S
  readonly #series = new Map<string, Labelled<S>>()
  /** As they are printed, with some that are gone while it is not sorted. */
  #printed: Labelled<S>[] = []
  #isSorted = true

  constructor(kind: Kind, definition: MetricDefinition<Labels>, create: (createdMs: number) => S) {
    this.kind = kind
    this.#header = header(kind, definition)
    this.#definition = definition
    this.#create = create
    this.#createUnlabelled()
  }

  get name(): string {
    return this.#definition.name
  }

  get labels(): readonly string[] {
    return this.#definition.labels
  }

  get help(): string {
    return this.#definition.help
  }

  /** The series with these label values, which exists from now on. */
  with(...values: LabelValues<Labels>): S {
    const key = keyOf(values)
    return (this.#series.get(key) ?? this.#add(key, values)).series
  }

  /** Forgets one series. */
  remove(...values: LabelValues<Labels>): void {
    if (this.#series.delete(keyOf(values))) this.#disorder()
  }

  /** Forgets every series. */
  clear(): void {
    this.#series.clear()
    this.#printed = []
  }

  reset(): void {
    this.clear()
    this.#createUnlabelled()
  }

  *parts(): Generator<string> {
    if (this.#series.size === 0) return
    let text = this.#header
    let labels = ''
    const emit = (suffix: string, lastLabel: string, value: number) => {
      text += line(
        this.name + suffix,
        labels === '' || lastLabel === '' ? labels + lastLabel : `${labels},${lastLabel}`,
        value,
      )
    }
    for (const group of this.#groups()) {
      for (const each of group) {
        labels = each.labels
        each.series.emit(emit)
      }
      yield text
      text = ''
    }
  }

  *encoded(options: EncodeOptions): Generator<Uint8Array> {
    if (this.#series.size === 0) return
    yield encodeFamily(this.kind, this.name, helpText(this.#definition))
    const writer = new ProtoWriter(8 * 1024)
    for (const group of this.#groups()) {
      writer.reset()
      for (const { key, series } of group.toReversed()) {
        encodeMetric(writer, labelPairs(this.labels, valuesOf(key)), (value) => series.encode(value, options))
      }
      yield writer.finish()
    }
  }

  /** In order, so many at a time. */
  *#groups(): Generator<readonly Labelled<S>[]> {
    const sorted = this.#sorted()
    for (let i = 0; i < sorted.length; i += SERIES_IN_PART) {
      // Some may have been removed since the group before.
      yield sorted.slice(i, i + SERIES_IN_PART).filter((each) => this.#has(each))
    }
  }

  /** Sorted when there are others. Most are in order already, which makes it cheap. */
  #sorted(): readonly Labelled<S>[] {
    if (this.#isSorted) return this.#printed
    this.#printed = this.#printed.filter((each) => this.#has(each)).sort((a, b) => (a.labels < b.labels ? -1 : 1))
    this.#isSorted = true
    return this.#printed
  }

  /** Not if it was removed, even if there is another one of the same labels since. */
  #has(each: Labelled<S>): boolean {
    return this.#series.get(each.key) === each
  }

  /** A metric without labels has its one series from the start, so that it is there with 0. */
  #createUnlabelled(): void {
    if (this.#definition.labels.length === 0) this.#add('', [])
  }

  #add(key: string, values: readonly string[]): Labelled<S> {
    const added = { key, labels: labelText(this.#definition.labels, values), series: this.#create(Date.now()) }
    this.#series.set(key, added)
    this.#disorder()
    this.#printed.push(added)
    return added
  }

  /** A page may be being made of the list as it was. */
  #disorder(): void {
    if (this.#isSorted) this.#printed = [...this.#printed]
    this.#isSorted = false
  }
}

/** A series, with the text of its labels. */
interface Labelled<S> {
  readonly key: string
  readonly labels: string
  readonly series: S
}

/** What a series is found by each time that it is written to: its labels are put into words once. */
function keyOf(values: readonly string[]): string {
  return values.length === 1 ? values[0]! : values.join('\0')
}

function valuesOf(key: string): string[] {
  return key.split('\0')
}

export function counter<const Labels extends readonly string[]>(
  definition: MetricDefinition<Labels>,
): Metric<Labels, Counter> {
  return new Metric('counter', definition, (createdMs) => new Counter(createdMs))
}

export function gauge<const Labels extends readonly string[]>(
  definition: MetricDefinition<Labels>,
): Metric<Labels, Gauge> {
  return new Metric('gauge', definition, () => new Gauge())
}

export function histogram<const Labels extends readonly string[]>(
  definition: MetricDefinition<Labels> & { readonly buckets: readonly number[] },
): Metric<Labels, Histogram> {
  return new Metric('histogram', definition, (createdMs) => new Histogram(createdMs, definition.buckets))
}

/** A metric whose values are looked up when it is scraped. Absent while the lookup throws: a scrape shows what it can. */
export function lookedUp<const Labels extends readonly string[]>(
  kind: 'counter' | 'gauge',
  definition: MetricDefinition<Labels>,
  read: () => Iterable<readonly [labels: LabelValues<Labels>, value: number]>,
): Printable {
  const metric = new Metric(kind, definition, () => (kind === 'counter' ? new Counter(undefined) : new Gauge()))
  const look = () => {
    metric.clear()
    try {
      for (const [labels, value] of read()) metric.with(...labels).value = value
    } catch {
      metric.clear()
    }
    return metric
  }
  const { name, labels, help } = metric
  return {
    kind,
    name,
    labels,
    help,
    parts: () => look().parts(),
    encoded: (options) => look().encoded(options),
    reset() {},
  }
}

/** The metrics that one page shows. */
export class Registry {
  readonly #metrics = new Map<string, Printable>()

  register(...metrics: readonly Printable[]): void {
    for (const metric of metrics) {
      if (this.#metrics.has(metric.name)) throw new Error(`Cannot register ${metric.name}: it is registered already`)
      this.#metrics.set(metric.name, metric)
    }
  }

  /** What there is to read, for documentation. */
  definitions(): readonly Pick<Printable, 'name' | 'kind' | 'labels' | 'help'>[] {
    return [...this.#metrics.values()]
  }

  reset(): void {
    for (const metric of this.#metrics.values()) metric.reset()
  }

  /** The Prometheus text format 0.0.4, ordered by name, as Go's client prints it. */
  text(): string {
    return [...this.parts()].join('')
  }

  /** The same, so much of it at a time as other work can wait for; of the metrics named alone if any are. */
  *parts(names?: ReadonlySet<string>): Generator<string> {
    let part = ''
    for (const metric of this.#inOrder(names)) {
      for (const text of metric.parts()) {
        part += text
        if (part.length < PART_LENGTH) continue
        yield part
        part = ''
      }
    }
    if (part !== '') yield part
  }

  /** The same as MetricFamily messages, each behind its length. A part is empty while the first metric is not complete. */
  *encoded(options: EncodeOptions, names?: ReadonlySet<string>): Generator<Uint8Array> {
    const complete: Uint8Array[] = []
    let length = 0
    for (const metric of this.#inOrder(names)) {
      const family: Uint8Array[] = []
      for (const part of metric.encoded(options)) {
        family.push(part)
        length += part.length
        if (length < PART_LENGTH) continue
        yield Buffer.concat(complete.splice(0))
        length = 0
      }
      if (family.length > 0) complete.push(encodeLength(family.reduce((sum, part) => sum + part.length, 0)), ...family)
    }
    yield Buffer.concat(complete)
  }

  #inOrder(names?: ReadonlySet<string>): Printable[] {
    const shown = [...this.#metrics.values()].filter(({ name }) => names === undefined || names.has(name))
    return shown.sort((a, b) => (a.name < b.name ? -1 : 1))
  }
}

function header(kind: Kind, definition: MetricDefinition<readonly string[]>): string {
  const { name } = definition
  const text = helpText(definition).replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
  return `# HELP ${name} ${text}\n# TYPE ${name} ${kind}\n`
}

function helpText({ help, stability }: MetricDefinition<readonly string[]>): string {
  return stability === undefined ? help : `[${stability}] ${help}`
}

function line(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${formatNumber(value)}\n`
}

/** `a="1",b="2"`, ordered by the labels' names. */
function labelText(names: readonly string[], values: readonly string[]): string {
  return labelPairs(names, values)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(',')
}

/** Ordered by the labels' names. */
function labelPairs(names: readonly string[], values: readonly string[]): [name: string, value: string][] {
  const pairs = names.map((name, i): [string, string] => [name, values[i]!])
  return pairs.sort(([a], [b]) => (a < b ? -1 : 1))
}

function escapeLabel(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n') : value
}
