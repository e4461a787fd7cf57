import { execFileSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { deleteCounter, ensureCounter, readCounter } from '../../src/nfacct/counters.ts'
import { unshareNetwork } from '../../src/system/netns.ts'

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('counters of nfacct (needs root)', () => {
  beforeAll(unshareNetwork)

  it('ensureCounter() makes one that iptables can use, and is content with one that is there', () => {
    expect(ensureCounter('packets_out')).toBe(true)
    expect(ensureCounter('packets_out')).toBe(true)
    execFileSync('ip', ['link', 'set', 'lo', 'up'])
    execFileSync('iptables-nft', ['-A', 'OUTPUT', '-p', 'udp', '-m', 'nfacct', '--nfacct-name', 'packets_out'])
    execFileSync('bash', ['-c', 'echo hello > /dev/udp/127.0.0.1/9; echo hello > /dev/udp/127.0.0.1/9'])
    expect(readCounter('packets_out')).toBe(2)
  })

  it('deleteCounter() leaves a counter that a rule uses', () => {
    deleteCounter('packets_out')
    expect(readCounter('packets_out')).toBe(2)
    execFileSync('iptables-nft', ['-F', 'OUTPUT'])
    deleteCounter('packets_out')
    expect(readCounter('packets_out')).toBe(0)
  })

  it('readCounter() is 0 for a counter that is not there', () => {
    expect(readCounter('nobody')).toBe(0)
  })
})
