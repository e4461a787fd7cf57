import * as fc from 'fast-check'
import { BlockList, isIP, isIPv4 } from 'node:net'
import { describe, expect, test } from 'vitest'
import {
  plainAddress,
  type Cidr,
  canonicalIp,
  cidrContains,
  cidrEnd,
  formatCidr,
  formatIp,
  ipFamily,
  isLinkLocal,
  isLoopback,
  joinHostPort,
  mergeCidrs,
  mergedContain,
  parseCidr,
  parseIp,
  splitHostPort,
  ipBytes,
} from './ip.ts'

const bytesOf = (text: string) => Array.from(parseIp(text) ?? '', (c) => c.charCodeAt(0))
const ip = fc.oneof(fc.ipV4(), fc.ipV6())
/** An IPv4 address in IPv6 clothes counts as IPv4 here, and as IPv6 to Node. */
const isMapped = (text: string) => text.includes(':') && ipFamily(text) === 4
const cidr = fc
  .tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }))
  .map(([address, prefix]) => parseCidr(`${address}/${prefix}`)!)

describe('parseIp()', () => {
  test.each([
    ['10.0.0.1', [10, 0, 0, 1]],
    ['010.000.0.08', [10, 0, 0, 8]],
    ['::ffff:10.0.0.1', [10, 0, 0, 1]],
    ['::1', [...Array<number>(15).fill(0), 1]],
    ['fd00::1:2', [0xfd, ...Array<number>(12).fill(0), 1, 0, 2]],
  ])('reads %s', (text, bytes) => {
    expect(bytesOf(text)).toEqual(bytes)
  })

  test.each([
    '',
    '10.0.0',
    '10.0.0.0.1',
    '10.0.0.256',
    '10.0.0.-1',
    '10.0.0.1 ',
    '10.0.0.0x1',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '12345::',
    'fe80::1%eth0',
    '[::1]',
    '::10.0.0.256',
  ])('does not take %j for an address', (text) => {
    expect(parseIp(text)).toBeUndefined()
  })

  test('takes what Node takes', () => {
    fc.assert(fc.property(ip, (text) => parseIp(text) !== undefined))
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'0123456789abcdefF:.%/ '.split('')) }), (text) => {
        // Leading zeros are all that Node is stricter about.
        const plain = isIPv4(text.replace(/\b0+(?=\d)/g, '')) || (isIP(text) === 6 && !text.includes('%'))
        return (parseIp(text) !== undefined) === plain
      }),
    )
  })
})

test('formatIp() is the shortest text, and is read back', () => {
  fc.assert(
    fc.property(ip, (text) => {
      const bytes = ipBytes(text)
      const formatted = formatIp(bytes)
      expect(parseIp(formatted)).toBe(bytes)
      if (formatted.includes(':')) expect(formatted).toBe(new URL(`http://[${formatted}]/`).hostname.slice(1, -1))
    }),
  )
})

test('canonicalIp() has one text for each address', () => {
  expect(canonicalIp('FD00:0:0::0001')).toBe('fd00::1')
  expect(canonicalIp('1:0:0:2:0:0:0:3')).toBe('1:0:0:2::3')
  expect(canonicalIp('no')).toBeUndefined()
})

describe('parseCidr()', () => {
  test('clears the bits of the host', () => {
    expect(formatCidr(parseCidr('10.1.2.3/8')!)).toBe('10.0.0.0/8')
    expect(formatCidr(parseCidr('fd00::ffff/127')!)).toBe('fd00::fffe/127')
  })

  test.each(['10.0.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0.0/8 ', '::/129', '10.0.0.0/0x8', '/8'])(
    'does not take %j for a range',
    (text) => {
      expect(parseCidr(text)).toBeUndefined()
    },
  )
})

test('cidrContains() and cidrEnd() agree with Node about what is in a range', () => {
  fc.assert(
    fc.property(ip, fc.integer({ min: 0, max: 128 }), ip, (network, wished, other) => {
      // To Node, every IPv4 address is an IPv6 address as well.
      fc.pre(!isMapped(network) && !isMapped(other) && ipFamily(network) === ipFamily(other))
      const prefix = Math.min(wished, network.includes(':') ? 128 : 32)
      const range = parseCidr(`${network}/${prefix}`)!
      const oracle = new BlockList()
      oracle.addSubnet(formatIp(range.network), prefix, range.family === 4 ? 'ipv4' : 'ipv6')
      expect(cidrContains(range, ipBytes(other))).toBe(oracle.check(other, range.family === 4 ? 'ipv4' : 'ipv6'))
      expect([range.network, cidrEnd(range)].map((each) => cidrContains(range, each))).toEqual([true, true])
    }),
  )
})

test('mergeCidrs() leaves ranges that do not overlap and hold the same addresses', () => {
  fc.assert(
    fc.property(fc.array(cidr, { maxLength: 6 }), fc.ipV4(), (ranges, address) => {
      const merged = mergeCidrs(ranges)
      const holders = merged.filter((range) => cidrContains(range, ipBytes(address)))
      expect(holders).toHaveLength(ranges.some((range) => cidrContains(range, ipBytes(address))) ? 1 : 0)
    }),
  )
})

test('mergeCidrs() makes one range of two halves, and of those a larger one', () => {
  const merged = (...texts: string[]) => mergeCidrs(texts.map((text) => parseCidr(text)!)).map(formatCidr)
  const quarters = ['10.0.0.128/26', '10.0.0.0/26', '10.0.0.192/26', '10.0.0.64/26']
  expect(merged(...quarters)).toEqual(['10.0.0.0/24'])
  expect(merged(...quarters.slice(1))).toEqual(['10.0.0.0/25', '10.0.0.192/26'])
  expect(merged('10.0.0.128/25', '10.0.1.0/25')).toEqual(['10.0.0.128/25', '10.0.1.0/25'])
  expect(merged('10.0.0.0/25', '10.0.0.128/26', '10.0.0.128/25', 'fd00::1/128', 'fd00::/128')).toEqual([
    '10.0.0.0/24',
    'fd00::/127',
  ])
  expect(merged('0.0.0.0/1', '128.0.0.0/1')).toEqual(['0.0.0.0/1', '128.0.0.0/1'])
})

test('mergedContain() finds what one of the ranges contains', () => {
  const near = fc.integer({ min: 0, max: 255 }).map((last) => `10.0.0.${last}`)
  const small = fc.tuple(near, fc.integer({ min: 24, max: 32 })).map(([address, prefix]) => `${address}/${prefix}`)
  const ranges = fc.array(
    small.map((text) => parseCidr(text)!),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(ranges, near, (given, text) => {
      const address = ipBytes(text)
      expect(mergedContain(mergeCidrs(given), address)).toBe(given.some((range) => cidrContains(range, address)))
    }),
  )
})

test('isLoopback() and isLinkLocal() know their ranges', () => {
  expect(['127.0.0.1', '127.255.0.1', '::1', '128.0.0.1', '::2'].map((text) => isLoopback(ipBytes(text)))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
  expect(['169.254.1.1', 'fe80::1', 'febf::1', 'fec0::1'].map((text) => isLinkLocal(ipBytes(text)))).toEqual([
    true,
    true,
    true,
    false,
  ])
})

test('splitHostPort() takes apart what joinHostPort() joined', () => {
  fc.assert(
    fc.property(ip, fc.integer({ min: 0, max: 65_535 }), (address, port) => {
      expect(splitHostPort(joinHostPort(address, port))).toEqual({ ip: address, port })
    }),
  )
})

test('mergeCidrs() makes the fewest ranges that hold the same addresses, of both families', () => {
  const cidr = fc
    .tuple(fc.constantFrom('10.0.0.', 'fd00::'), fc.integer({ min: 0, max: 9 }), fc.integer({ min: 24, max: 32 }))
    .map(([start, last, prefix]) => parseCidr(`${start}${last}/${start === 'fd00::' ? prefix + 96 : prefix}`)!)
  const addresses = ['10.0.0.', 'fd00::'].flatMap((start) =>
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 17].map((last) => ipBytes(`${start}${last}`)),
  )
  fc.assert(
    fc.property(fc.array(cidr, { maxLength: 12 }), (cidrs) => {
      const merged = mergeCidrs(cidrs)
      const heldBy = (ranges: typeof merged) =>
        addresses.filter((address) => ranges.some((range) => cidrContains(range, address)))
      expect(heldBy(merged)).toEqual(heldBy(cidrs))
      // Nothing can be left out, nor two be one.
      const wider = merged.map(({ network, prefix }) => parseCidr(`${formatIp(network)}/${prefix - 1}`)!)
      const isIn = (range: Cidr, inner: Cidr) =>
        range.prefix <= inner.prefix && range.family === inner.family && cidrContains(range, inner.network)
      for (const [i, range] of merged.entries()) {
        expect(merged.filter((other) => isIn(other, range))).toEqual([range])
        const sameSize = merged.filter((other) => other.prefix === range.prefix && isIn(wider[i]!, other))
        expect(sameSize).toHaveLength(1)
      }
    }),
  )
})

test.each([10_000, 80_000])('mergeCidrs() of %i ranges takes a moment', (n) => {
  const cidrs = Array.from({ length: n }, (_, i) => parseCidr(`10.${i >> 15}.${(i >> 7) & 255}.${(i << 1) & 255}/32`)!)
  const before = process.cpuUsage()
  expect(mergeCidrs(cidrs)).toHaveLength(n)
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(2)
})

test('plainAddress() takes IPv4 out of IPv6', () => {
  expect(['::ffff:10.0.0.1', 'fd00::1', undefined].map(plainAddress)).toEqual(['10.0.0.1', 'fd00::1', ''])
})
