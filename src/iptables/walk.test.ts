import { expect, test } from 'vitest'
import { parseIp, ipBytes } from '../lib/ip.ts'
import { parseSaved, walkableTables } from './walkable.ts'

const saved = parseSaved(`*nat
:OUTPUT ACCEPT [0:0]
:KUBE-SVC-A - [0:0]
:KUBE-SEP-1 - [0:0]
:KUBE-SEP-2 - [0:0]
-A OUTPUT -d 10.0.0.1/32 -p tcp -m tcp --dport 80 -j KUBE-SVC-A
-A KUBE-SVC-A -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-1 --mask 255.255.255.255 --rsource -j KUBE-SEP-1
-A KUBE-SVC-A -m recent --rcheck --seconds 600 --reap --name KUBE-SEP-2 --mask 255.255.255.255 --rsource -j KUBE-SEP-2
-A KUBE-SVC-A -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-1
-A KUBE-SVC-A -j KUBE-SEP-2
-A KUBE-SEP-1 -p tcp -m recent --set --name KUBE-SEP-1 --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.1.0.1:8080
-A KUBE-SEP-2 -p tcp -m recent --set --name KUBE-SEP-2 --mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.1.0.2:8080
COMMIT
`)
const packet = {
  inputInterface: undefined,
  source: ipBytes('10.9.0.1'),
  sourcePort: 40_000,
  destination: ipBytes('10.0.0.1'),
  destinationPort: 80,
  protocol: 'TCP',
} as const
const around = { isLocalAddress: () => false, random: () => 0, now: () => 100_000 }

test('a client that affinity remembers is reported, and until when', () => {
  const recent = new Map([['KUBE-SEP-2', new Map([[packet.source, 50_000]])]])
  const way = walkableTables(saved, recent, 'tables').walk(packet, around)
  expect([way.destination, way.affinityEntry]).toEqual([
    parseIp('10.1.0.2'),
    { endpoint: undefined, expiresMs: 650_000 },
  ])
})

test('one that was noted too long ago, or never, is not', () => {
  const recent = new Map([['KUBE-SEP-2', new Map([[packet.source, 100_000 - 600_000]])]])
  for (const lists of [recent, new Map()]) {
    expect(walkableTables(saved, lists, 'tables').walk(packet, around).affinityEntry).toBeUndefined()
  }
})
