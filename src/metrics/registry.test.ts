import { describe, expect, test } from 'vitest'
import { counter, gauge, histogram, lookedUp, Registry, type Printable } from './registry.ts'

function textOf(...metrics: Printable[]): string {
  const registry = new Registry()
  registry.register(...metrics)
  return registry.text()
}

describe('Registry', () => {
  test('text() prints a metric without labels from the start, with its stability', () => {
    const pending = gauge({ name: 'b_pending', help: 'Pending things', labels: [], stability: 'ALPHA' })
    expect(textOf(pending)).toBe('# HELP b_pending [ALPHA] Pending things\n# TYPE b_pending gauge\nb_pending 0\n')
    pending.with().set(3)
    pending.with().set(2)
    expect(textOf(pending)).toContain('\nb_pending 2\n')
  })

  test('text() leaves out a labelled metric until it has a series, and orders metrics, series and labels by name', () => {
    const rules = gauge({ name: 'a_rules', help: 'Rules', labels: ['table', 'ip_family'] })
    const seen = counter({ name: 'a_seen_total', help: 'Seen', labels: [] })
    expect(textOf(seen, rules)).not.toContain('a_rules')
    rules.with('nat', 'IPv6').set(2)
    rules.with('nat', 'IPv4').set(1)
    rules.with('filter', 'IPv6').set(3)
    seen.with().inc()
    seen.with().inc(2)
    expect(textOf(seen, rules)).toBe(
      `# HELP a_rules Rules
# TYPE a_rules gauge
a_rules{ip_family="IPv4",table="nat"} 1
a_rules{ip_family="IPv6",table="filter"} 3
a_rules{ip_family="IPv6",table="nat"} 2
# HELP a_seen_total Seen
# TYPE a_seen_total counter
a_seen_total 3
`,
    )
  })

  test('text() escapes help texts and label values', () => {
    const metric = gauge({ name: 'x', help: 'one \\ two\nthree "four"', labels: ['l'] })
    metric.with('a"b\\c\nd').set(1)
    expect(textOf(metric)).toBe('# HELP x one \\\\ two\\nthree "four"\n# TYPE x gauge\nx{l="a\\"b\\\\c\\nd"} 1\n')
  })

  test('text() prints histograms cumulated; an observation on a bound is within it', () => {
    const latency = histogram({ name: 'h', help: 'H', labels: ['ip_family'], buckets: [0.5, 1, 2] })
    for (const value of [0.25, 0.5, 1.5, 9]) latency.with('IPv4').observe(value)
    expect(textOf(latency)).toBe(
      `# HELP h H
# TYPE h histogram
h_bucket{ip_family="IPv4",le="0.5"} 2
h_bucket{ip_family="IPv4",le="1"} 2
h_bucket{ip_family="IPv4",le="2"} 3
h_bucket{ip_family="IPv4",le="+Inf"} 4
h_sum{ip_family="IPv4"} 11.25
h_count{ip_family="IPv4"} 4
`,
    )
    expect(latency.with('IPv4').count).toBe(4)
  })

  test('lookedUp() reads at each scrape and is absent while it cannot', () => {
    let value = 1
    const metric = lookedUp('gauge', { name: 'x', help: 'X', labels: ['l'] }, () => {
      if (value === 3) throw new Error('gone')
      return [
        [['b'], value++],
        [['a'], 7],
      ]
    })
    expect(textOf(metric)).toBe('# HELP x X\n# TYPE x gauge\nx{l="a"} 7\nx{l="b"} 1\n')
    expect(textOf(metric)).toContain('x{l="b"} 2')
    expect(textOf(metric)).toBe('')
  })

  test('register() refuses a name twice', () => {
    const registry = new Registry()
    const definition = { name: 'twice', help: '', labels: [] } as const
    registry.register(gauge(definition))
    expect(() => registry.register(counter(definition))).toThrow('Cannot register twice')
  })

  test('series stay in order when some go, come and come again, also while a page is made', () => {
    const rules = gauge({ name: 'rules', help: 'Rules', labels: ['table'] })
    const tables = () => [...textOf(rules).matchAll(/table="(\w+)"/g)].map(([, table]) => table)
    for (const table of ['c', 'a', 'b']) rules.with(table).set(1)
    expect(tables()).toEqual(['a', 'b', 'c'])
    rules.remove('b')
    rules.with('d').set(1)
    rules.with('b').set(1)
    expect(tables()).toEqual(['a', 'b', 'c', 'd'])
    const page = rules.parts()
    rules.remove('a')
    rules.with('_').set(1)
    expect([...page].join('')).toMatch(/="_".*="b".*="c".*="d"/s)
    expect(tables()).toEqual(['_', 'b', 'c', 'd'])
  })

  test('reset() forgets labelled series and sets the others to 0', () => {
    const registry = new Registry()
    const labelled = counter({ name: 'a', help: 'A', labels: ['l'] })
    const plain = counter({ name: 'b', help: 'B', labels: [] })
    registry.register(labelled, plain)
    labelled.with('x').inc()
    plain.with().inc()
    registry.reset()
    expect(registry.text()).toBe('# HELP b B\n# TYPE b counter\nb 0\n')
  })
})
