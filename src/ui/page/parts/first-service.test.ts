import { expect, test } from 'vitest'
import { makeService, makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import { firstService } from './first-service.ts'

test('one that leads somewhere comes first, then any but the cluster’s own', () => {
  const { pods } = makeSnapshot()
  const empty = { ...makeService(1, []), name: 'empty' }
  const headless = { ...makeService(2, pods), clusterIPs: ['None'] }
  const system = { ...makeService(3, pods), system: true }
  const whoami = makeService(0, pods)
  expect(firstService([system, empty, headless, whoami])).toBe(whoami)
  expect(firstService([system, empty])).toBe(empty)
  expect(firstService([system])).toBe(system)
  expect(firstService([])).toBeUndefined()
})
