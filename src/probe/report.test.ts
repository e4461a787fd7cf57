import { expect, test } from 'vitest'
import { phases } from './checks.ts'
import { planChecks } from './plan-checks.ts'
import { findCauses } from './findings.ts'
import {
  compareReports,
  formatJunit,
  formatReport,
  nextCommand,
  outcomeOfTest,
  parseReport,
  reportedCheck,
  type TestReport,
} from './report.ts'
import { someFacts } from '../../test/support/probe-facts.ts'

const plain = (_: string, text: string) => text

function aReport(nodes: number, isBroken: (row: string, node: string) => boolean = () => false): TestReport {
  const facts = someFacts(nodes, [4])
  const results = phases
    .flatMap((phase) => planChecks(facts, phase))
    .map((check) => ({
      check,
      verdict: isBroken(check.row, check.proxy)
        ? ({ kind: 'fail', reason: 'no answer' } as const)
        : ({ kind: 'pass', reason: '' } as const),
    }))
  return {
    version: 1,
    nodes: facts.nodes.map(({ name }) => name),
    families: facts.families,
    tookMs: 4200,
    checks: results.map(reportedCheck),
    findings: findCauses(results).map((finding) => ({ ...finding, next: nextCommand(finding.node, [], 'kube-proxy') })),
    notTried: [],
    notes: [],
  }
}

test('the table has a column for each node and a line for each kind of check', () => {
  expect(
    formatReport(
      aReport(2, (row, node) => row === 'hairpin' && node === 'node-2'),
      plain,
    ),
  ).toMatchInlineSnapshot(`
    "                       node-1        node-2
    pod network            ok 8          ok 8
    API server             ok 2          ok 2
    cluster IP             ok 4          ok 4
    hairpin                ok 2          FAIL 2/2
    external IP            ok 4          ok 4
    load balancer IP       ok 4          ok 4
    node port              ok 8          ok 8
    session affinity       ok 4          ok 4
    source ranges          ok 2          ok 2
    internal policy Local  ok 4          ok 4
    external policy Local  ok 4          ok 4
    client address kept    ok 2          -
    health check port      ok 1          ok 1
    no endpoints           ok 8          ok 8
    dead endpoint          ok 2          ok 2
    endpoint replaced      ok 8          ok 8
    open UDP socket        ok 4          ok 4
    terminating endpoint   ok 8          ok 8
    last endpoint gone     ok 8          ok 8
    endpoint back          ok 8          ok 8

    2 of 188 checks failed, on 2 nodes, in 4.2 s.

    node-2: hairpin: 2 checks failed.
      Why: Otherwise, or on other nodes, it works. A pod on node-2 to 10.96.0.10:80/TCP (hairpin): no answer.
      Next: kube-proxy doctor   # on node-2; no pod of a proxy is there
    "
  `)
})

test('of many nodes only those where something failed have a column', () => {
  const text = formatReport(
    aReport(40, (row, node) => row === 'node port' && node === 'node-7'),
    plain,
  )
  expect(
    text
      .split('\n')[0]
      ?.trim()
      .split(/\s{2,}/),
  ).toEqual(['node-7', '39 others'])
  expect(formatReport(aReport(40), plain).split('\n')[0]?.trim()).toBe('40 nodes')
})

test('the outcome: failed wins over partly', () => {
  const good = aReport(2)
  const bad = aReport(2, () => true)
  expect(outcomeOfTest(good)).toBe('passed')
  expect(outcomeOfTest({ ...good, notTried: ['node-3: the node is not ready'] })).toBe('partly')
  expect(outcomeOfTest({ ...bad, notTried: ['node-3: the node is not ready'] })).toBe('failed')
})

test('the next command fits the proxy that the node has', () => {
  const proxies = [
    { node: 'a', pod: 'kube-system/kube-proxy-x', isOurs: false },
    { node: 'b', pod: 'kube-system/kube-proxy-ts-y', isOurs: true },
  ]
  expect(nextCommand('a', proxies, 'kube-proxy')).toBe('kubectl -n kube-system logs kube-proxy-x')
  expect(nextCommand('b', proxies, 'kube-proxy')).toBe(
    'kubectl -n kube-system exec kube-proxy-ts-y -- /usr/local/bin/kube-proxy doctor',
  )
  expect(nextCommand('c', proxies, 'kube-proxy')).toContain('kube-proxy doctor')
  expect(nextCommand(undefined, proxies, 'kubectl kubeproxy')).toMatch(/^kubectl kubeproxy test --keep /)
})

test('JUnit: a suite for each kind of check, what failed with its reason, and nothing that XML cannot hold', () => {
  const report = aReport(2, (row) => row === 'hairpin')
  const broken = { ...report.checks[0]!, reason: '<"\u0001&\'>', verdict: 'fail' } as const
  const xml = formatJunit({ ...report, checks: [broken, ...report.checks.slice(1)] })
  expect(xml).toContain('<testsuite name="hairpin" tests="4" failures="4" errors="0" skipped="0">')
  expect(xml).toContain('message="&lt;&quot;&amp;&apos;&gt;"')
  expect(xml.match(/<testcase /g)?.length).toBe(report.checks.length)
  expect(xml.match(/<failure /g)?.length).toBe(5)
})

test('two results are compared by what was tried', () => {
  const before = aReport(2)
  expect(compareReports(before, aReport(2))).toEqual([])
  const [first, ...others] = before.checks
  const worse = {
    ...before,
    checks: [{ ...first!, verdict: 'fail', reason: 'no answer' } as const, ...others.slice(1)],
  }
  expect(compareReports(before, worse)).toEqual([
    `pass, now fail: ${first!.id}: no answer`,
    `no longer tried: ${others[0]!.id}`,
  ])
  expect(compareReports(worse, before)).toEqual([`fail, now pass: ${first!.id}`, `new: ${others[0]!.id}: pass`])
})

test('a result is read back; other files are none', () => {
  const report = aReport(1)
  expect(parseReport(JSON.stringify(report))).toEqual(report)
  expect(parseReport('{"version":2,"checks":[]}')).toBeUndefined()
  expect(parseReport('nothing')).toBeUndefined()
})
