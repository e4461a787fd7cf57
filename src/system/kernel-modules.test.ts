import { expect, test } from 'vitest'
import { moduleState, parseModuleList } from './kernel-modules.ts'

test('parseModuleList() reads both lists, compressed or not', () => {
  const dep = 'kernel/net/netfilter/nf_tables.ko.xz: kernel/net/netfilter/nfnetlink.ko.xz\nkernel/net/ip-vs.ko:\n'
  expect([...parseModuleList(dep)]).toEqual(['nf_tables', 'ip_vs'])
  expect([...parseModuleList('kernel/drivers/net/dummy.ko\nkernel/fs/ext4/ext4.ko.zst\n')]).toEqual(['dummy', 'ext4'])
  expect([...parseModuleList('')]).toEqual([])
})

test.each([
  ['dummy', [], 'built in'],
  ['ip_vs', ['ip_vs'], 'loaded'],
  ['ip_vs', [], 'can be loaded'],
  ['ip_vs_rr', [], 'missing'],
])('moduleState(%s) with %j in /sys is %s', (name, sys, expected) => {
  const installed = { builtIn: new Set(['dummy']), loadable: new Set(['ip_vs']) }
  expect(moduleState(name, { isInSys: (each) => sys.includes(each), installed })).toBe(expected)
})

test('without a list of modules, what is not loaded is unknown and not missing', () => {
  expect(moduleState('ip_vs', { isInSys: () => false, installed: undefined })).toBe('unknown')
  expect(moduleState('ip_vs', { isInSys: () => true, installed: undefined })).toBe('loaded')
})
