import { expect, test } from 'vitest'
import { parseTemplates } from './templates.ts'

test('parseTemplates() takes what persistence remembers, of both families, and no connections', () => {
  // As Linux 6.12 prints it.
  const text = `Pro FromIP   FPrt ToIP     TPrt DestIP   DPrt State       Expires PEName PEData
TCP 0A01000B 2CD5 0A0201B0 0050 0A01000C 1F90 ESTABLISHED     899
TCP 0A060002 0000 0A0201B0 0050 0A01000C 1F90 NONE             59
TCP fd01:0000:0000:000a:0000:0000:0000:000b 0000 fd02:0000:0000:0000:0000:0000:0000:01b0 0050 fd01:0000:0000:000a:0000:0000:0000:000c 1F90 NONE         50
nonsense
`
  expect(parseTemplates(text)).toEqual([
    {
      protocol: 'TCP',
      client: '10.6.0.2',
      server: { address: '10.2.1.176', port: 80 },
      destination: { address: '10.1.0.12', port: 8080 },
      secondsLeft: 59,
    },
    {
      protocol: 'TCP',
      client: 'fd01:0:0:a::b',
      server: { address: 'fd02::1b0', port: 80 },
      destination: { address: 'fd01:0:0:a::c', port: 8080 },
      secondsLeft: 50,
    },
  ])
})
