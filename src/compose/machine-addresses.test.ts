import { expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { KernelError } from '../lib/errors.ts'
import { silentLogger } from '../lib/log.ts'
import { followMachineAddresses } from './machine-addresses.ts'

test('what cannot be read now is read again until it can', async () => {
  const clock = new ManualClock()
  const seen: (readonly string[])[] = []
  let failures = 2
  let change = () => {}
  const following = followMachineAddresses({
    clock,
    log: silentLogger,
    onAddresses: (addresses) => seen.push(addresses),
    read: () => {
      if (failures-- > 0) throw new KernelError('open a netlink socket', 'EMFILE')
      return ['10.0.0.1']
    },
    watch: (onChange) => {
      change = onChange
      return { close() {} }
    },
  })
  change()
  await clock.advance(1500)
  expect(seen).toEqual([])
  await clock.advance(1000)
  expect(seen).toEqual([['10.0.0.1']])
  await clock.advance(10_000)
  expect(seen).toHaveLength(1)
  failures = 1
  change()
  following.close()
  await clock.advance(10_000)
  expect(seen).toHaveLength(1)
})
