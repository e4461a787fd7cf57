// The rights of the ipvs mode: what the manifests and the systemd unit grant is enough, and not too much.

import { expect, test } from 'vitest'
import { openRig } from '../support/rig.ts'
import { outcomeOfStart } from '../support/rights.ts'

test('CAP_NET_ADMIN is enough for the ipvs mode, and it takes that', async () => {
  await using rig = await openRig()
  expect(await outcomeOfStart(rig, 'ipvs', [])).toMatch(/^it ends with 1: .*(not permitted|EPERM|denied)/i)
  expect(await outcomeOfStart(rig, 'ipvs', ['CAP_NET_ADMIN'])).toBe('it serves')
})
