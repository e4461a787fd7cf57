// Counters, gauges and histograms, and the text that Prometheus reads.
//
// Our own because it is small and always loaded: the usual package costs 30 ms of start-up and 12 MB of memory.
// Writing to a metric is a lookup and a field access. All other work is left to the scrape.

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

/** Receives one line: a suffix for the name, a label behind the others, the value. */
type Emit = (suffix: string, lastLabel: string, value: number) => void

interface Series {
  emit(emit: Emit): void
}

/** Only goes up. */
export class Counter implements Series {
  value = 0

  inc(by = 1): void {
    this.value += by
  }

  emit(emit: Emit): void {
    emit('', '', this.value)
  }
}

/** Goes up and down. */
export class Gauge implements Series {
  value = 0

  set(value: number): void {
    this.value = value
  }

  inc(by = 1): void {
    this.value += by
  }

  dec(by = 1): void {
    this.value -= by
  }

  emit(emit: Emit): void {
    emit('', '', this.value)
  }
}

/** Counts observations in buckets. */
export class Histogram implements Series {
  sum = 0
  readonly #bounds: readonly number[]
  /** Observations per bucket, not cumulated; the last is for those beyond every bound. */
  readonly #counts: number[]

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  observe(value: number): void {
    let bucket = 0
    while (bucket < this.#bounds.length && value > this.#bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.sum += value
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
}

/** Of one metric, printed at a time. */
const SERIES_IN_PART = 512
/** So many characters are a part of a page: that of a proxy that shows no traffic is one. */
const PART_LENGTH = 64 * 1024

/** A metric of any kind, as a registry sees it. */
export interface Printable {
  readonly name: string
  readonly kind: Kind
  readonly labels: readonly string[]
  readonly help: string
  /** Its lines, so many at a time; none while it has no series. */
  parts(): Iterable<string>
  /** Forgets every series. */
  reset(): void
}

/** A metric with its series, one per combination of label values. */
export class Metric<Labels extends readonly string[], S extends Series> implements Printable {
  readonly kind: Kind
  readonly #header: string
  readonly #definition: MetricDefinition<Labels>
  readonly #create: () => S
  readonly #series = new Map<string, Labelled<S>>()
  /** As they are printed, with some that are gone while it is not sorted. */
  #printed: Labelled<S>[] = []
  #isSorted = true

  constructor(kind: Kind, definition: MetricDefinition<Labels>, create: () => S) {
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

  reset(): void {
    this.#series.clear()
    this.#printed = []
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
    let count = 0
    for (const each of this.#sorted()) {
      labels = each.labels
      // It may have been removed since the part before.
      if (this.#has(each)) each.series.emit(emit)
      count++
      if (count % SERIES_IN_PART !== 0) continue
      yield text
      text = ''
    }
    if (text !== '') yield text
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
    const added = { key, labels: labelText(this.#definition.labels, values), series: this.#create() }
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

export function counter<const Labels extends readonly string[]>(
  definition: MetricDefinition<Labels>,
): Metric<Labels, Counter> {
  return new Metric('counter', definition, () => new Counter())
}

export function gauge<const Labels extends readonly string[]>(
  definition: MetricDefinition<Labels>,
): Metric<Labels, Gauge> {
  return new Metric('gauge', definition, () => new Gauge())
}

export function histogram<const Labels extends readonly string[]>(
  definition: MetricDefinition<Labels> & { readonly buckets: readonly number[] },
): Metric<Labels, Histogram> {
  return new Metric('histogram', definition, () => new Histogram(definition.buckets))
}

/** A metric whose values are looked up when it is scraped. Absent while the lookup throws: a scrape shows what it can. */
export function lookedUp<const Labels extends readonly string[]>(
  kind: 'counter' | 'gauge',
  definition: MetricDefinition<Labels>,
  read: () => Iterable<readonly [labels: LabelValues<Labels>, value: number]>,
): Printable {
  return {
    kind,
    name: definition.name,
    labels: definition.labels,
    help: definition.help,
    parts: () => {
      try {
        const lines = Array.from(read(), ([values, value]) =>
          line(definition.name, labelText(definition.labels, values), value),
        )
        return lines.length === 0 ? [] : [header(kind, definition) + lines.sort().join('')]
      } catch {
        return []
      }
    },
    reset: () => {},
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

  /** The same, so much of it at a time as other work can wait for. */
  *parts(): Generator<string> {
    let part = ''
    for (const name of [...this.#metrics.keys()].sort()) {
      for (const text of this.#metrics.get(name)!.parts()) {
        part += text
        if (part.length < PART_LENGTH) continue
        yield part
        part = ''
      }
    }
    if (part !== '') yield part
  }
}

function header(kind: Kind, definition: MetricDefinition<readonly string[]>): string {
  const { name, help, stability } = definition
  const text = `${stability === undefined ? '' : `[${stability}] `}${help}`.replace(/\\/g, '\\\\').replace(/\n/g, '\\n')
  return `# HELP ${name} ${text}\n# TYPE ${name} ${kind}\n`
}

function line(name: string, labels: string, value: number): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${formatNumber(value)}\n`
}

/** `a="1",b="2"`, ordered by the labels' names. */
function labelText(names: readonly string[], values: readonly string[]): string {
  return [...names.keys()]
    .sort((a, b) => (names[a]! < names[b]! ? -1 : 1))
    .map((index) => `${names[index]!}="${escapeLabel(values[index]!)}"`)
    .join(',')
}

function escapeLabel(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n') : value
}

/** A number as Go's client prints it: the shortest that reads back the same, with an exponent below 1e-4 and from 1e6 on. */
export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf'
  const size = Math.abs(value)
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return String(value)
  return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2')
}
