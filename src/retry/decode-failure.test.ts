import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { asBytes, bytesOf, ipBytes } from '../lib/ip.ts'
import { decodeFailure } from './decode-failure.ts'

const SYN = 0x02
const RST_ACK = 0x14

function ipHeader(family: 4 | 6, protocol: number, from: string, to: string): string {
  const addresses = ipBytes(from) + ipBytes(to)
  if (family === 4) return `\x45${'\0'.repeat(8)}${String.fromCharCode(protocol)}\0\0${addresses}`
  return `\x60${'\0'.repeat(5)}${String.fromCharCode(protocol)}\x40${addresses}`
}

function port(number: number): string {
  return String.fromCharCode(number >> 8, number & 0xff)
}

function tcp(from: number, to: number, flags: number): string {
  return port(from) + port(to) + '\0'.repeat(8) + '\x50' + String.fromCharCode(flags) + '\0'.repeat(6)
}

describe.each([
  { family: 4, icmp: 1, pod: '10.1.0.7', client: '10.1.0.9', service: '10.2.0.1' },
  { family: 6, icmp: 58, pod: 'fd01::7', client: 'fd01::9', service: 'fd02::1' },
] as const)('decodeFailure() of IPv$family', ({ family, icmp, pod, client, service }) => {
  test('a reset is a backend that refuses', () => {
    expect(decodeFailure(asBytes(ipHeader(family, 6, pod, client) + tcp(8080, 4711, RST_ACK)))).toEqual({
      kind: 'refused',
      family,
      backend: { ip: pod, port: 8080 },
    })
  })

  test('a SYN is a client that heard nothing', () => {
    expect(decodeFailure(asBytes(ipHeader(family, 6, client, service) + tcp(4711, 80, SYN)))).toEqual({
      kind: 'silent',
      family,
      client: { ip: client, port: 4711 },
      dialled: { ip: service, port: 80 },
    })
  })

  test('an ICMP error is a backend that is gone', () => {
    const quoted = ipHeader(family, 6, client, pod) + tcp(4711, 8080, SYN)
    expect(
      decodeFailure(asBytes(`${ipHeader(family, icmp, service, client)}\x03\x01${'\0'.repeat(6)}${quoted}`)),
    ).toEqual({
      kind: 'unreachable',
      family,
      backend: { ip: pod, port: 8080 },
      sender: { ip: client, port: 4711 },
    })
  })

  test('an ICMP error about something else is none of ours', () => {
    const quoted = ipHeader(family, 17, client, pod) + port(4711) + port(53)
    const packet = `${ipHeader(family, icmp, service, client)}\x03\x03${'\0'.repeat(6)}${quoted}`
    expect(decodeFailure(asBytes(packet))).toBeUndefined()
  })
})

test('decodeFailure() never throws, whatever the packet', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 128 }), (bytes) => {
      decodeFailure(bytesOf(...bytes))
    }),
  )
})

test('decodeFailure() of a packet that is cut off is undefined', () => {
  const whole = ipHeader(4, 6, '10.1.0.7', '10.1.0.9') + tcp(8080, 4711, RST_ACK)
  for (let length = 0; length < 34; length++) expect(decodeFailure(asBytes(whole.slice(0, length)))).toBeUndefined()
})
