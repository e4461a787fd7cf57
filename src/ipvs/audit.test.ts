import { describe, expect, test } from 'vitest'
import { unused } from '../../test/support/memory-ipvs.ts'
import { IpvsAudit, TableCounter } from './audit.ts'
import type { IpvsOp, ServerState } from './types.ts'

// As Linux 6.12 prints it.
const table = `IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
FWM  00000063 rr 
  -> 0A400009:0000      Masq    1      0          0
TCP  0A600001:0050 rr 
  -> 0A400001:1F90      Masq    1      0          0
  -> 0A400002:1F90      Masq    1      0          0
UDP  0A600001:0035 rr persistent 10800 FFFFFFFF
SCTP  0A600002:0050 rr 
  -> 0A400001:1F90      Masq    1      0          0
TCP  [fd02:0000:0000:0000:0000:0000:0000:01b0]:0050 rr 
  -> [fd01:0000:0000:000a:0000:0000:0000:000c]:1F90      Masq    1      0          0
`

describe('TableCounter', () => {
  test('counts servers and destinations by family, without those by firewall mark', () => {
    for (const size of [1, 7, 64, 10_000]) {
      const counter = new TableCounter()
      for (const piece of table.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []) counter.add(piece)
      expect(counter.counts(4)).toEqual({ servers: 3, destinations: 3 })
      expect(counter.counts(6)).toEqual({ servers: 1, destinations: 1 })
    }
  })
})

describe('IpvsAudit', () => {
  const server = {
    family: 4,
    protocol: 'TCP',
    address: '10.96.0.1',
    port: 80,
    scheduler: 'rr',
    schedulerFlags: 0,
    persistenceSeconds: undefined,
  } as const
  const other = { ...server, port: 81 }
  const add = (host: number): IpvsOp => ({
    op: 'addDestination',
    server,
    destination: { address: `10.64.0.${host}`, port: 8080, weight: 1 },
  })
  const state = (destinations: number): ServerState => ({
    server,
    destinations: Array.from({ length: destinations }, (_, i) => ({
      address: `10.64.0.${i}`,
      port: 8080,
      weight: 1,
      ...unused,
    })),
  })

  test('follows what we do, servers that go with their destinations included', () => {
    const audit = new IpvsAudit()
    audit.reset([state(2)])
    expect(audit.check({ servers: 1, destinations: 2 })).toBe(true)
    audit.note([add(7), { op: 'addServer', server: other }])
    expect(audit.check({ servers: 2, destinations: 3 })).toBe(true)
    audit.note([{ op: 'deleteServer', server }])
    expect(audit.check({ servers: 1, destinations: 0 })).toBe(true)
  })

  test('notices what another program did, after we deleted a server too', () => {
    const audit = new IpvsAudit()
    audit.reset([state(2)])
    audit.note([
      { op: 'addServer', server: other },
      { op: 'deleteServer', server },
    ])
    expect(audit.check({ servers: 0, destinations: 0 })).toBe(false)
  })

  test('reports each difference once, and again when it comes again', () => {
    const audit = new IpvsAudit()
    audit.reset([state(2)])
    expect(audit.check({ servers: 1, destinations: 1 })).toBe(false)
    expect(audit.check({ servers: 1, destinations: 1 })).toBe(true)
    audit.reset([state(2)])
    expect(audit.check({ servers: 1, destinations: 2 })).toBe(true)
    expect(audit.check({ servers: 1, destinations: 1 })).toBe(false)
  })
})
