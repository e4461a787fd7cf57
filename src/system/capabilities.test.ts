import { expect, test } from 'vitest'
import { parseCapabilities } from './capabilities.ts'

test.each([
  ['Name:\tnode\nCapEff:\t000001ffffffffff\nCapBnd:\t0\n', ['CAP_NET_BIND_SERVICE', 'CAP_NET_ADMIN', 'CAP_NET_RAW', 'CAP_SYS_MODULE', 'CAP_SYS_ADMIN']], // oxfmt-ignore
  ['CapInh:\tffff\nCapEff:\t0000000000001000\n', ['CAP_NET_ADMIN']],
  ['CapEff:\t0000000000000000\n', []],
  ['nothing of that kind', []],
])('parseCapabilities(%j)', (status, expected) => {
  expect([...parseCapabilities(status)]).toEqual(expected)
})
