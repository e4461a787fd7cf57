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
TCP fd01:0000:0000:000a:0000:0000:0000:000b 2CD9 fd02:0000:0000:0000:0000:0000:0000:01b0 0050 fd01:0000:0000:000a:0000:0000:0000:000c 1F90 SYN_RECV         50
SCTP 0A01000B 2CD5 0A0201B0 0050 0A01000C 1F90 SHUTDOWN_SENT    5
`

const server = { family: 4, protocol: 'TCP', address: '10.2.1.176', port: 80 } as const
const server6 = { family: 6, protocol: 'TCP', address: 'fd02::1b0', port: 80 } as const
const destination = { address: '10.1.0.12', port: 8080 }
const destination6 = { address: 'fd01:0:0:a::c', port: 8080 }
const wanted = [
  { server, destination },
  { server, destination: { ...destination, port: 8081 } },
  { server: { ...server, protocol: 'SCTP' }, destination },
  { server: server6, destination: destination6 },
] as const

function counts(...pieces: readonly string[]): (number | undefined)[] {
  const connections = new OpenConnections(wanted)
  for (const piece of pieces) connections.add(piece)
  return wanted.map((each) => connections.count(each.server, each.destination))
}

test('count() counts connections that may carry data, without those that are closed and without persistence', () => {
  expect(counts(text)).toEqual([2, 0, 1, 1])
})

test('count() knows only what was asked for', () => {
  const connections = new OpenConnections([{ server, destination }])
  connections.add(text)
  expect(connections.count(server6, destination6)).toBeUndefined()
})

test('add() takes the file in any pieces', () => {
  for (let size = 1; size < 200; size += 13) {
    expect(counts(...(text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []))).toEqual([2, 0, 1, 1])
  }
})

test('add() understands nothing of nonsense', () => {
  expect(counts('TCP\nTCP a b c d e f\n\nTCP 0A01000B 2CD5 0A0201B0 0050 0A01000C 1F90\n')).toEqual([0, 0, 0, 0])
})
