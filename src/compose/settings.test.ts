import { describe, expect, it } from 'vitest'
import { configurationFromFlags } from '../cli/apply-flags.ts'
import { modeNamed, modes } from '../modes/all.ts'
import { nodeSettings, restartsFor } from './settings.ts'

const configFor = (mode: string) => configurationFromFlags(new Map([['proxy-mode', mode]]), modes).loaded.config

describe('restartsFor()', () => {
  it.each([
    ['iptables', true],
    ['nftables', false],
  ])('%s: another conntrack.tcpBeLiberal takes a new proxy: %s', (mode, expected) => {
    const before = configFor(mode)
    const after = { ...before, conntrack: { ...before.conntrack, tcpBeLiberal: true } }
    expect(restartsFor(modeNamed(mode), before, before)).toBe(false)
    expect(restartsFor(modeNamed(mode), before, after)).toBe(expected)
  })
})

describe('nodeSettings()', () => {
  it('are those of the configured mode', () => {
    expect(nodeSettings(configFor('nftables')).nodePortAddresses).toEqual(['primary'])
    expect(nodeSettings(configFor('iptables')).nodePortAddresses).toEqual([])
  })
})
