import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { MOST_OF_NAMESPACE, MOST_OF_SERVICE, MOST_SUSPECTS } from './suspect-quota.ts'
import { Suspects, type SuspectChange, type ProbeResult } from './suspects.ts'

const pod = { family: 4, ip: '10.1.0.7', port: 8080 } as const
const other = { family: 4, ip: '10.1.0.8', port: 8080 } as const

const web = ['default/web']

class Court {
  readonly clock = new ManualClock()
  readonly changes: SuspectChange[] = []
  readonly probes: number[] = []
  result: ProbeResult = 'fails'
  readonly suspects = new Suspects({
    clock: this.clock,
    probe: async () => {
      this.probes.push(this.clock.monotonicNow())
      return this.result
    },
    onChange: (_, change) => this.changes.push(change),
  })
}

test('a suspect that fails its probe is ejected, and back when a later probe succeeds', async () => {
  const court = new Court()
  expect(court.suspects.report(pod, 'refused', web)).toBe('suspected')
  await court.clock.advance(0)
  expect(court.suspects.list()).toMatchObject([{ ...pod, state: 'ejected', reason: 'refused', failedProbes: 1 }])
  expect(court.suspects.report(pod, 'silent', web)).toBe('ejected')
  court.result = 'answers'
  await court.clock.advance(1000)
  expect(court.suspects.list()).toEqual([])
  expect(court.changes).toEqual(['suspected', 'ejected', 'returned'])
})

test('the pauses between probes grow, up to half a minute', async () => {
  const court = new Court()
  court.suspects.report(pod, 'silent', web)
  await court.clock.advance(130_000)
  expect(court.probes).toEqual([0, 1, 3, 7, 15, 31, 61, 91, 121].map((seconds) => seconds * 1000))
})

test('a suspect that answers is acquitted, and trusted for a second whatever clients do', async () => {
  const court = new Court()
  court.result = 'answers'
  court.suspects.report(pod, 'silent', web)
  await court.clock.advance(0)
  for (let i = 0; i < 100; i++) expect(court.suspects.report(pod, 'silent', web)).toBe('trusted')
  expect(court.probes).toHaveLength(1)
  await court.clock.advance(1000)
  expect(court.suspects.report(pod, 'silent', web)).toBe('suspected')
  await court.clock.advance(0)
  expect(court.changes).toEqual(['suspected', 'acquitted', 'suspected', 'acquitted'])
})

test('a probe that could not be made says nothing: a suspect is acquitted, an ejected one stays ejected', async () => {
  const court = new Court()
  court.suspects.report(pod, 'refused', web)
  await court.clock.advance(0)
  court.result = 'unknown'
  court.suspects.report(other, 'refused', web)
  await court.clock.advance(1000)
  expect(court.suspects.list()).toMatchObject([{ ...pod, state: 'ejected' }])
})

test('one that is no backend any more is forgotten, also while it is tried', async () => {
  const court = new Court()
  court.suspects.report(pod, 'refused', web)
  court.suspects.forget(pod)
  await court.clock.advance(60_000)
  expect(court.suspects.list()).toEqual([])
  expect(court.changes).toEqual(['suspected', 'gone'])
  expect(court.clock.waiting).toBe(0)
})

test('more suspects than can be looked at are left alone', () => {
  const court = new Court()
  for (let i = 0; i < MOST_SUSPECTS; i++) {
    const services = [`ns-${i % 16}/web`]
    expect(court.suspects.report({ ...pod, port: 1 + i }, 'refused', services)).toBe('suspected')
  }
  expect(court.suspects.report(other, 'refused', web)).toBe('trusted')
})

test('one service, or one namespace, leaves places to the others', () => {
  const court = new Court()
  const suspectAll = (ip: string, services: readonly string[]) => {
    let suspected = 0
    for (let port = 1; port <= MOST_SUSPECTS; port++)
      if (court.suspects.report({ family: 4, ip, port }, 'refused', services) === 'suspected') suspected++
    return suspected
  }
  expect(suspectAll('10.1.0.1', ['tenant/a'])).toBe(MOST_OF_SERVICE)
  expect(suspectAll('10.1.0.2', ['tenant/b'])).toBe(MOST_OF_NAMESPACE - MOST_OF_SERVICE)
  expect(suspectAll('10.1.0.3', ['tenant/c'])).toBe(0)
  expect(suspectAll('10.1.0.4', ['tenant-2/a'])).toBe(MOST_OF_SERVICE)
  // Nor does it help to name another's endpoints: those are suspected in the name of whoever has a place left.
  expect(court.suspects.report(pod, 'refused', ['tenant/a', 'victim/web'])).toBe('suspected')
})

test('endpoints that come and go do not have the node try any number of addresses', async () => {
  const court = new Court()
  const addresses = Array.from({ length: 1000 }, (_, i) => ({ ...pod, port: 1 + i }))
  const visit = () => {
    for (const backend of addresses) {
      court.suspects.report(backend, 'refused', web)
      court.suspects.forget(backend)
    }
  }
  visit()
  expect(court.probes).toHaveLength(MOST_OF_SERVICE)
  await court.clock.advance(9000)
  visit()
  // Those that have their places still.
  expect(court.probes).toHaveLength(2 * MOST_OF_SERVICE)
  expect(court.suspects.report({ ...pod, port: 999 }, 'refused', web)).toBe('trusted')
  await court.clock.advance(11_000)
  expect(court.suspects.report({ ...pod, port: 999 }, 'refused', web)).toBe('suspected')
})
