import { expect, test } from 'vitest'
import { formatRow, replaceRow } from '../test/machine/table.mjs'

const facts = { kernel: '6.1.0', architecture: 'amd64', commit: 'abc', date: new Date('2026-11-19T05:00:00Z') }

test('formatRow() counts what passed, and names what failed or was not reached', () => {
  const lines = [
    'PASS nftables: starts and serves (1.0 s)',
    'PASS nftables: removes what it wrote (1.0 s)',
    'PASS ipvs: starts and serves (1.0 s)',
    'FAIL ipvs: UDP, pod to cluster IP (9.9 s): ["no answer"], must be pod1 and pod2',
  ]
  expect(formatRow({ ...facts, modes: ['nftables', 'ipvs', 'userspace'], lines })).toBe(
    '| 6.1.0 | amd64 | nftables 2 of 2, ipvs 1 of 2 (UDP, pod to cluster IP; not finished), userspace 0 of 0 (not finished) | 2026-11-19, abc |',
  )
})

test('replaceRow() has one row for each kernel and processor', () => {
  const empty = 'a\n<!-- kernels: made by scripts/kernels --write -->\n<!-- /kernels -->\nb\n'
  const first = replaceRow(empty, '| 6.1 | arm64 | x | then |')
  const both = replaceRow(replaceRow(first, '| 6.1 | amd64 | x | then |'), '| 6.1 | arm64 | y | now |')
  expect(both.split('\n').filter((line) => line.startsWith('| 6.1'))).toEqual([
    '| 6.1 | amd64 | x | then |',
    '| 6.1 | arm64 | y | now |',
  ])
  expect(both.startsWith('a\n') && both.endsWith('\nb\n')).toBe(true)
})
