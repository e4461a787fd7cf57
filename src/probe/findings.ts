// From failed checks to sentences: the fewest descriptions that fit all failures and nothing that works. Pure.

import type { Check } from './checks.ts'
import { count } from '../lib/count.ts'
import type { Verdict } from './verdict.ts'

export interface CheckResult {
  readonly check: Check
  readonly verdict: Verdict
}

export interface Finding {
  /** One sentence. */
  readonly headline: string
  readonly why: string
  /** The only node concerned. */
  readonly node: string | undefined
  readonly failed: readonly string[]
}

/** What failures may have in common; `undefined` does not apply to a check. */
const traits = {
  node: ({ proxy }: Check) => proxy,
  time: ({ phase }: Check) => (phase === 'start' ? 'start' : 'later'),
  family: ({ family }: Check) => `IPv${family}`,
  protocol: ({ protocol }: Check) => protocol as string,
  row: ({ row }: Check) => row as string,
  via: ({ via }: Check) => via,
  client: ({ client }: Check) => client.kind as string,
} as const
type Trait = keyof typeof traits
type Pattern = Readonly<Partial<Record<Trait, string>>>

const MAX_FINDINGS = 6

export function findCauses(results: readonly CheckResult[]): Finding[] {
  const tried = results.filter(({ verdict }) => verdict.kind !== 'not tried')
  const network = tried.filter(({ check }) => check.row === 'pod network')
  const services = tried.filter(({ check }) => check.row !== 'pod network')
  const cut = new Set(network.filter(isFailed).map(({ check }) => pathOf(check, check.client.node)))
  const isCut = ({ check }: CheckResult) =>
    cut.has(pathOf(check, check.client.node)) || cut.has(pathOf(check, check.proxy))
  const findings = findCutNodes(network.filter(isFailed))
  // Where the network fails, Services cannot work, and say nothing about the proxy.
  const explained = services.filter((result) => isFailed(result) && isCut(result)).length
  if (explained > 0 && findings[0] !== undefined)
    findings[0] = { ...findings[0], why: `${findings[0].why} ${count(explained, 'check')} of Services failed with it.` }
  return [...findings, ...coverAll(services.filter((result) => !isCut(result)))]
}

function isFailed({ verdict }: CheckResult): boolean {
  return verdict.kind === 'fail'
}

function pathOf({ family, protocol }: Check, node: string): string {
  return `${node} ${family} ${protocol}`
}

/** The nodes that most failures have in common, as the one side or the other. */
function findCutNodes(failures: readonly CheckResult[]): Finding[] {
  const findings: Finding[] = []
  let left = failures
  while (left.length > 0) {
    const counts = new Map<string, number>()
    for (const { check } of left)
      for (const node of new Set([check.client.node, check.to ?? ''])) counts.set(node, (counts.get(node) ?? 0) + 1)
    const [node] = [...counts].reduce((most, each) => (each[1] > most[1] ? each : most))
    const covered = left.filter(({ check }) => check.client.node === node || check.to === node)
    left = left.filter((result) => !covered.includes(result))
    const all = (of: (check: Check) => string): string => {
      const values = new Set(covered.map(({ check }) => of(check)))
      return values.size === 1 ? [...values].join('') : ''
    }
    const how = `${inTrait('protocol', all(traits.protocol))}${inTrait('family', all(traits.family))}`
    findings.push({
      headline: `${node}: pods do not reach each other${how}, even without a Service: ${count(covered.length, 'check')} failed.`,
      why: `The pod network, a policy or a firewall drops these packets, not the proxy. ${sample(covered[0]!)}`,
      node,
      failed: covered.map(({ check }) => check.id),
    })
  }
  return findings
}

function coverAll(results: readonly CheckResult[]): Finding[] {
  const candidates = findPatterns(results)
  let left = results.filter(isFailed)
  const findings: Finding[] = []
  while (left.length > 0 && findings.length < MAX_FINDINGS) {
    let best: { readonly pattern: Pattern; readonly covered: readonly CheckResult[] } | undefined
    for (const pattern of candidates) {
      const covered = left.filter(({ check }) => fits(pattern, check))
      if (covered.length > (best?.covered.length ?? 1)) best = { pattern, covered }
    }
    const { pattern, covered } = best ?? { pattern: exactly(left[0]!.check), covered: [left[0]!] }
    const taken = new Set(covered)
    left = left.filter((result) => !taken.has(result))
    findings.push(describe(pattern, covered, results))
  }
  if (left.length > 0) {
    const failed = left.map(({ check }) => check.id)
    findings.push({
      headline: `${count(left.length, 'more check')} failed.`,
      why: sample(left[0]!),
      node: undefined,
      failed,
    })
  }
  return findings
}

/**
 * Where nothing works, silence and refusals are right by chance, and the Service of the API server may be older than the trouble:
 * among all kinds of checks only answers say that something works.
 */
function isCounterexample({ expected, row }: Check, set: readonly Trait[]): boolean {
  return set.includes('row') || ((expected.kind === 'answer' || expected.kind === 'measure') && row !== 'API server')
}

/** Values of traits for which everything failed; few traits come first. */
function findPatterns(results: readonly CheckResult[]): Pattern[] {
  let sets: Trait[][] = [[]]
  for (const trait of Object.keys(traits) as Trait[]) sets = sets.flatMap((set) => [set, [...set, trait]])
  sets.sort((a, b) => a.length - b.length)
  return sets.flatMap((set) => {
    const groups = new Map<string, { pattern: Pattern; failed: number; works: boolean }>()
    for (const { check, verdict } of results) {
      const values = set.map((trait) => [trait, traits[trait](check)] as const)
      const key = values.map(([, value]) => value).join('|')
      const group = groups.get(key) ?? { pattern: Object.fromEntries(values), failed: 0, works: false }
      groups.set(key, group)
      if (verdict.kind === 'fail') group.failed++
      else if (isCounterexample(check, set)) group.works = true
    }
    return [...groups.values()].filter(({ failed, works }) => failed > 1 && !works).map(({ pattern }) => pattern)
  })
}

function fits(pattern: Pattern, check: Check): boolean {
  return Object.entries(pattern).every(([trait, value]) => traits[trait as Trait](check) === value)
}

function exactly(check: Check): Pattern {
  return Object.fromEntries(Object.entries(traits).map(([trait, of]) => [trait, of(check)]))
}

function describe(pattern: Pattern, failed: readonly CheckResult[], all: readonly CheckResult[]): Finding {
  const { node, row, via, time } = pattern
  const by = via === undefined || via === row ? '' : ` (${via})`
  const what = row === undefined ? (via === undefined ? 'no Service works' : `the ${via} does not work`) : `${row}${by}`
  const where = node === undefined ? '' : `${node}: `
  const inPhase = time === 'later' && row === undefined ? ' after a change of endpoints' : ''
  const how = [
    inTrait('family', pattern.family),
    inTrait('protocol', pattern.protocol),
    inTrait('client', pattern.client),
  ]
  const headline = `${where}${what}${how.join('')}${inPhase}: ${count(failed.length, 'check')} failed.`
  return {
    headline,
    why: `${reasonOf(pattern, failed, all)} ${sample(failed[0]!)}`,
    node,
    failed: failed.map(({ check }) => check.id),
  }
}

function reasonOf(pattern: Pattern, failed: readonly CheckResult[], all: readonly CheckResult[]): string {
  const { node, row, via, time, protocol, family, client } = pattern
  if (node === undefined) return `On ${count(new Set(failed.map(({ check }) => check.proxy)).size, 'node')}.`
  const works = (is: (check: Check) => boolean): boolean =>
    all.some(({ check, verdict }) => check.proxy === node && verdict.kind === 'pass' && is(check))
  const answers = (check: Check): boolean => check.expected.kind === 'answer' && check.row !== 'API server'
  if (time === 'later' && works((check) => check.phase === 'start' && answers(check)))
    return 'Its Services worked until their endpoints changed: its proxy does not follow changes.'
  const isAll = [row, via, protocol, family, client].every((each) => each === undefined)
  if (!isAll) return 'Otherwise, or on other nodes, it works.'
  if (works(({ row: is }) => is === 'API server'))
    return 'Pods are reached without a Service, and the older Service of the API server works: its proxy does not follow changes.'
  return 'Pods are reached without a Service: its proxy has programmed nothing, or something drops these packets.'
}

const ofTrait: Readonly<Partial<Record<Trait, (value: string) => string>>> = {
  family: (value) => ` over ${value}`,
  protocol: (value) => ` by ${value}`,
  client: (value) => (value === 'outside' ? ' from outside' : ` from ${value}s`),
}

function inTrait(trait: Trait, value: string | undefined): string {
  return value === undefined || value === '' ? '' : (ofTrait[trait]?.(value) ?? '')
}

/** The first failure, whole. */
function sample({ check, verdict }: CheckResult): string {
  const { client, dial, protocol, row } = check
  const from =
    client.kind === 'outside'
      ? 'This machine'
      : client.kind === 'pod'
        ? `A pod on ${client.node}`
        : `Node ${client.node}`
  const address = dial.address.includes(':') ? `[${dial.address}]` : dial.address
  return `${from} to ${address}:${dial.port}/${protocol} (${row}): ${verdict.reason}.`
}
