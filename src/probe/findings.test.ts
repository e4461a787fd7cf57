import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Check, phases } from './checks.ts'
import { planChecks } from './plan-checks.ts'
import { findCauses, type Finding } from './findings.ts'
import { someFacts } from '../../test/support/probe-facts.ts'

const facts = someFacts(3)
const checks = phases.flatMap((phase) => planChecks(facts, phase))
const causes = (isBroken: (check: Check) => boolean): Finding[] =>
  findCauses(
    checks.map((check) => ({
      check,
      verdict: isBroken(check) ? { kind: 'fail', reason: 'no answer' } : { kind: 'pass', reason: '' },
    })),
  )
const headlines = (isBroken: (check: Check) => boolean): string[] =>
  causes(isBroken).map(({ headline }) => headline.replace(/\d+ checks?/, 'N checks'))
const isService = ({ row }: Check) => row !== 'pod network'
/** Silence is what a proxy that does nothing gives, too; and closed ports refuse. */
const needsProxy = ({ expected, via }: Check) =>
  expected.kind === 'answer' || expected.kind === 'measure' || (expected.kind === 'refusal' && via === 'cluster IP')

test('nothing failed: nothing is found', () => {
  expect(headlines(() => false)).toEqual([])
})

test('a node whose proxy does nothing is one finding', () => {
  const [finding, ...others] = causes((check) => isService(check) && check.proxy === 'node-2' && needsProxy(check))
  expect(others).toEqual([])
  expect(finding).toMatchObject({ node: 'node-2' })
  expect(finding?.headline).toMatch(/^node-2: no Service works: \d+ checks failed\.$/)
  expect(finding?.why).toContain('its proxy has programmed nothing')
})

test('a proxy that was stopped before: the older Service of the API server works', () => {
  const [finding, ...others] = causes(
    (check) => isService(check) && check.row !== 'API server' && check.proxy === 'node-2' && needsProxy(check),
  )
  expect(others).toEqual([])
  expect(finding?.headline).toMatch(/^node-2: no Service works: /)
  expect(finding?.why).toContain('its proxy does not follow changes')
})

test('a proxy that stopped in between', () => {
  const broken = (check: Check) => check.proxy === 'node-3' && check.phase !== 'start'
  const [finding, ...others] = causes(broken)
  expect(others).toEqual([])
  expect(finding?.headline).toMatch(/^node-3: no Service works after a change of endpoints: /)
  expect(finding?.why).toContain('worked until their endpoints changed')
})

test('what failures have in common is named, and no more', () => {
  expect(headlines((check) => isService(check) && check.family === 6)).toEqual([
    'no Service works over IPv6: N checks failed.',
  ])
  expect(headlines((check) => isService(check) && check.via === 'node port' && check.proxy === 'node-1')).toEqual([
    'node-1: the node port does not work: N checks failed.',
  ])
  expect(headlines(({ row }) => row === 'session affinity')).toEqual(['session affinity: N checks failed.'])
  expect(headlines(({ row, protocol }) => row === 'source ranges' && protocol === 'UDP')).toEqual([
    'source ranges by UDP: N checks failed.',
  ])
  expect(headlines(({ row, via }) => row === 'no endpoints' && via === 'cluster IP')).toEqual([
    'no endpoints (cluster IP): N checks failed.',
  ])
  expect(headlines(({ row, client }) => row === 'hairpin' && client.node === 'node-1')).toEqual([
    'node-1: hairpin: N checks failed.',
  ])
})

test('a pod network that is cut is not the fault of the proxy', () => {
  const touches = ({ client, proxy, to }: Check, node: string) => [client.node, proxy, to].includes(node)
  const found = causes(
    (check) =>
      check.protocol === 'TCP' &&
      touches(check, 'node-3') &&
      (check.row !== 'pod network' || check.client.node !== check.to),
  )
  expect(found.map(({ headline }) => headline.replace(/\d+ checks?/, 'N checks'))).toEqual([
    'node-3: pods do not reach each other by TCP, even without a Service: N checks failed.',
  ])
  expect(found[0]?.why).toContain('not the proxy')
  expect(found[0]?.why).toMatch(/\d+ checks of Services failed with it\./)
})

test('whatever fails, each failure is in one finding or belongs to the network, and nothing that passed is', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(checks.length - 1), { maxLength: 60 }), (broken) => {
      const ids = new Set(broken.map((i) => checks[i]!.id))
      const found = causes(({ id }) => ids.has(id)).flatMap(({ failed }) => failed)
      expect(new Set(found).size).toBe(found.length)
      expect(found.filter((id) => !ids.has(id))).toEqual([])
      if (![...ids].some((id) => id.includes('pod network'))) expect(found.length).toBe(ids.size)
    }),
    { numRuns: 30 },
  )
})
