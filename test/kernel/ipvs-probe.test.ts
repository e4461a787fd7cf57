// What the ipvs mode says on a machine whose kernel lacks something for it. (Where nothing is missing: test/uml.)

import { existsSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { UnsupportedError } from '../../src/lib/errors.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { cleanupIpvs, openIpvs } from '../../src/modes/ipvs/machine.ts'
import { probeIpvs } from '../../src/modes/ipvs/probe.ts'
import { systemClock } from '../../src/lib/clock.ts'

const isRoot = process.getuid?.() === 0
const hasIpvs = existsSync('/proc/net/ip_vs')

describe.skipIf(!isRoot || hasIpvs)('on a kernel without IPVS (needs root)', () => {
  beforeAll(() => unshareNetwork())

  it('probeIpvs() names the modules that are missing', () => {
    expect(() => probeIpvs([4, 6])).toThrow(UnsupportedError)
    expect(() => probeIpvs([4, 6])).toThrow(/^Cannot use proxy mode ipvs: .*kernel modules? ip_vs/)
  })

  it('openIpvs() throws it before it has changed anything', () => {
    const settings = {
      scheduler: '',
      excludeCIDRs: [],
      strictARP: true,
      tcpTimeoutMs: 1,
      tcpFinTimeoutMs: 1,
      udpTimeoutMs: 1,
    }
    const files = {
      read: () => '0',
      write: () => {
        throw new Error('must not be called')
      },
    }
    const open = () =>
      openIpvs({ settings, families: [4, 6], clock: systemClock, log: silentLogger, files, onForeignChange() {} })
    expect(open).toThrow(UnsupportedError)
  })

  it('cleanupIpvs() is harmless', () => {
    expect(cleanupIpvs({ excludeCIDRs: [] }, silentLogger)).toBeUndefined()
  })
})
