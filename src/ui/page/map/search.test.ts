import { describe, expect, it } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { filterServices } from './search.ts'

const snapshot = makeSnapshot({ pods: 10, services: 10 })
const find = (words: string, namespace = '') =>
  filterServices(snapshot, { words, namespace, system: false }).map(({ name }) => name)

describe('the search of the map', () => {
  it.each([
    ['whoami', 10],
    ['service-3', 1],
    ['10.96.0.24', 1],
    ['30005', 1],
    ['SERVICE 30005', 1],
    ['aaaa7', 1],
    ['nothing of this', 0],
    ['', 10],
  ])('finds by %j', (words, count) => {
    expect(find(words)).toHaveLength(count)
  })

  it('keeps to a namespace', () => {
    expect(find('', 'other')).toEqual([])
  })

  it('shows those of the cluster itself only when asked', () => {
    const services = snapshot.services.map((service, i) => ({ ...service, system: i === 0 }))
    const count = (system: boolean) =>
      filterServices({ ...snapshot, services }, { words: '', namespace: '', system }).length
    expect([count(false), count(true)]).toEqual([9, 10])
  })
})
