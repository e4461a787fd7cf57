import { describe, expect, it } from 'vitest'
import { UnsupportedError } from '../lib/errors.ts'
import { modeNamed } from '../modes/all.ts'
import type { Mode, ModeOptions, RunningMode } from '../modes/contract.ts'
import type { StandIns } from '../config/modes.ts'
import { openModeOrStandIn } from './open-mode.ts'

const open: RunningMode = { programmer: () => expect.unreachable(), close() {} }

function aMode(name: string, behaviour: () => RunningMode): Mode {
  // A mode needs no more than these two.
  const machine = { open: behaviour, cleanup() {} }
  return { ...modeNamed(name), load: async () => machine }
}

const behaviours = new Map<string, () => RunningMode>()
const find = (name: string) => aMode(name, () => behaviours.get(name)!())
const options = {} as ModeOptions
const openAs = (name: string, standIns: StandIns) => openModeOrStandIn({ name, standIns, find }, options)

const lacks = (feature: string) => () => {
  throw new UnsupportedError(feature, 'the kernel lacks it')
}

describe('openModeOrStandIn()', () => {
  it('opens the mode that was asked for', async () => {
    behaviours.set('ipvs', () => open)
    expect(await openAs('ipvs', 'allowed')).toMatchObject({ mode: { name: 'ipvs' }, reasons: [] })
  })

  it('falls back step by step and says why', async () => {
    behaviours.set('ipvs', lacks('ipvs'))
    behaviours.set('iptables', lacks('iptables'))
    behaviours.set('nftables', () => open)
    const { mode, reasons } = await openAs('ipvs', 'allowed')
    expect(mode.name).toBe('nftables')
    expect(reasons).toEqual([
      'Cannot use ipvs: the kernel lacks it; falling back from ipvs to iptables',
      'Cannot use iptables: the kernel lacks it; falling back from iptables to nftables',
    ])
  })

  it('falls back to userspace only where that was asked for', async () => {
    behaviours.set('ipvs', lacks('ipvs'))
    behaviours.set('iptables', lacks('iptables'))
    behaviours.set('nftables', lacks('nftables'))
    behaviours.set('userspace', () => open)
    await expect(openAs('iptables', 'allowed')).rejects.toThrow('Cannot use nftables')
    expect(await openAs('ipvs', 'with userspace')).toMatchObject({ mode: { name: 'userspace' } })
  })

  it('refuses when stand-ins are not wanted', async () => {
    behaviours.set('ipvs', lacks('ipvs'))
    await expect(openAs('ipvs', 'refused')).rejects.toThrow(UnsupportedError)
  })

  it('has no stand-in for nftables', async () => {
    behaviours.set('nftables', lacks('nftables'))
    await expect(openAs('nftables', 'allowed')).rejects.toThrow(UnsupportedError)
  })

  it('does not hide other failures behind a stand-in', async () => {
    behaviours.set('ipvs', () => {
      throw new Error('a mistake')
    })
    await expect(openAs('ipvs', 'allowed')).rejects.toThrow('a mistake')
  })
})
