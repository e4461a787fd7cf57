import { expect, test } from 'vitest'
import { OpenConnections } from './connections.ts'

// As Linux 6.12 prints it.
const text = `Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
TCP 0A01000B 2CD5 0A0201B0 0050 0A01000C 1F90 ESTABLISHED     899
TCP 0A01000B 2CD6 0A0201B0 0050 0A01000C 1F90 TIME_WAIT       118
TCP 0A01000B 2CD7 0A0201B0 0050 0A01000C 1F90 FIN_WAIT        110
TCP 0A01000B 2CD8 0A0201B0 0050 0A01000C 1F90 CLOSE             7
TCP 0A060002 0000 0A0201B0 0050 0A01000C 1F90 NONE             59
UDP 0A06000F 2A74 0A03000A 7535 0A01000C 1F90 UDP             290
TCP FD01:0000:0000:000A:0000:0000:0000:000B 2CD9 FD02:0000:0000:0000:0000:0000:0000:01B0 0050 FD01:0000:0000:000A:0000:0000:0000:000C 1F90 SYN_RECV         50
SCTP 0A01000B 2CD5 0A0201B0 0050 0A01000C 1F90 SHUTDOWN_SENT    5
`

const server = { family: 4, protocol: 'TCP', address: '10.2.1.176', port: 80 } as const
const backend = { address: '10.1.0.12', port: 8080 }

test('count() counts connections that may carry data, without those that are closed and without persistence', () => {
  expect(new OpenConnections(text).count(server, backend)).toBe(2)
  expect(new OpenConnections(text).count(server, { ...backend, port: 8081 })).toBe(0)
  expect(new OpenConnections(text).count({ ...server, protocol: 'SCTP' }, backend)).toBe(1)
  const server6 = { family: 6, protocol: 'TCP', address: 'fd02::1b0', port: 80 } as const
  expect(new OpenConnections(text).count(server6, { address: 'fd01:0:0:a::c', port: 8080 })).toBe(1)
})

test('new OpenConnections() understands nothing of nonsense', () => {
  expect(new OpenConnections('TCP\nTCP a b c d e f\n\n').count(server, backend)).toBe(0)
})
