import { expect, test } from 'vitest'
import { draining, slice } from '../../test/support/kube-objects.ts'
import type { EndpointSlice } from '../kube/types.ts'
import { formatIp } from '../lib/ip.ts'
import {
  READY,
  SERVING,
  TERMINATING,
  addressAt,
  concernsFamily,
  countOf,
  parseSlice,
  sameRecord,
} from './slice-record.ts'
import type { SliceRecord } from './slice-record.ts'

function read(object: EndpointSlice, family: 4 | 6 = 4): { record: SliceRecord | undefined; problems: string[] } {
  const problems: string[] = []
  const record = parseSlice(object, { key: 'default/web-1', service: 'default/web' }, { family, problems })
  return { record, problems }
}

function addressesOf(record: SliceRecord | undefined): string[] {
  return Array.from({ length: countOf(record!) }, (_, i) => formatIp(addressAt(record!, i)))
}

test('parseSlice() keeps canonical addresses in order of their bytes', () => {
  const { record } = read(slice(['10.1.0.10', '010.001.000.009', '9.0.0.1']))
  expect(addressesOf(record)).toEqual(['9.0.0.1', '10.1.0.9', '10.1.0.10'])
})

test('parseSlice() keeps the conditions and nodes beside their addresses', () => {
  const { record } = read(
    slice([
      { address: '10.1.0.2', nodeName: 'b' },
      { address: '10.1.0.1', ...draining },
    ]),
  )
  expect(record?.nodeNames).toEqual(['', 'b'])
  expect(record?.conditions).toBe(String.fromCharCode(SERVING | TERMINATING, READY | SERVING))
})

test('parseSlice() prefers the endpoint that is not terminating when an address is there twice', () => {
  const running = { address: '10.1.0.1', ready: false, serving: false, nodeName: 'new' }
  const leaving = { address: '10.1.0.1', ...draining, nodeName: 'old' }
  expect(read(slice([running, leaving])).record?.nodeNames).toEqual(['new'])
  expect(read(slice([leaving, running])).record?.nodeNames).toEqual(['new'])
})

test('parseSlice() ignores addresses of the other family and garbage, and says so once', () => {
  const { record, problems } = read(slice(['fd00::1', 'garbage', '10.1.0.1', '']))
  expect(addressesOf(record)).toEqual(['10.1.0.1'])
  expect(problems).toEqual(['endpoint address "fd00::1" is not an IPv4 address and is ignored (and 2 more)'])
})

test('parseSlice() reads IPv6', () => {
  const { record, problems } = read(slice(['FD00:0::2', 'fd00::1'], { addressType: 'IPv6' }), 6)
  expect(addressesOf(record)).toEqual(['fd00::1', 'fd00::2'])
  expect(problems).toEqual([])
})

test('parseSlice() ignores ports without a number or with one that does not exist', () => {
  const ports = [
    { name: 'none', port: undefined },
    { name: 'zero', port: 0 },
    { name: 'big', port: 65536 },
    { name: 'ok' },
  ]
  const { record, problems } = read(slice([], { ports }))
  expect(record?.ports).toEqual([{ name: 'ok', protocol: 'TCP', port: 8080 }])
  expect(problems).toEqual(['port "none" has no number and is ignored (and 2 more)'])
})

test('parseSlice() ignores ports whose names the API never lets through', () => {
  const { record, problems } = read(slice([], { ports: [{ name: 'a\nb' }, { name: 'ok' }] }))
  expect(record?.ports.map(({ name }) => name)).toEqual(['ok'])
  expect(problems).toEqual(['port "a\\nb" has an invalid name and is ignored'])
})

test.each(['127.0.0.1', '127.8.9.10', '169.254.169.254', '224.0.0.1', '0.0.0.0'])(
  'parseSlice() ignores the endpoint %s, which the API forbids',
  (address) => {
    const { record, problems } = read(slice([address, '10.1.0.1']))
    expect(addressesOf(record)).toEqual(['10.1.0.1'])
    expect(problems).toEqual([`endpoint address "${address}" is loopback, link-local or unspecified and is ignored`])
  },
)

test.each(['::1', '::', 'fe80::1', 'ff02::1', 'ff12::1'])('parseSlice() ignores the IPv6 endpoint %s', (address) => {
  const { record } = read(slice([address, 'fd00::1'], { addressType: 'IPv6' }), 6)
  expect(addressesOf(record)).toEqual(['fd00::1'])
})

test.each(['224.0.1.1', '239.1.2.3', '100.64.0.1', '192.168.1.1', '8.8.8.8', '255.255.255.255'])(
  'parseSlice() keeps the endpoint %s, which the API allows',
  (address) => expect(addressesOf(read(slice([address])).record)).toEqual([address]),
)

test('parseSlice() refuses a slice of names or of no service', () => {
  expect(read(slice(['a.example'], { addressType: 'FQDN' }))).toEqual({
    record: undefined,
    problems: ['address type "FQDN" is not IPv4 or IPv6; the slice is ignored'],
  })
  expect(read(slice([], { serviceName: '' }))).toEqual({
    record: undefined,
    problems: ['label kubernetes.io/service-name is missing; the slice is ignored'],
  })
})

test('parseSlice() does not repeat a text without end', () => {
  const { problems } = read(slice(['x'.repeat(1_000_000)]))
  expect(problems[0]?.length).toBeLessThan(200)
})

test('concernsFamily() lets only the other family pass by in silence', () => {
  expect(concernsFamily(slice([], { addressType: 'IPv6' }), 4)).toBe(false)
  expect(concernsFamily(slice([], { addressType: 'IPv4' }), 4)).toBe(true)
  expect(concernsFamily(slice([], { addressType: 'FQDN' }), 4)).toBe(true)
})

test('sameRecord() sees every difference that matters', () => {
  const base = () => slice([{ address: '10.1.0.1', nodeName: 'a', zoneHints: ['z'] }, '10.1.0.2'])
  const record = read(base()).record as SliceRecord
  const differs = (other: EndpointSlice) => !sameRecord(record, read(other).record as SliceRecord)
  expect(differs(base())).toBe(false)
  expect(differs({ ...base(), triggerTimeMs: 5 })).toBe(false)
  expect(differs(slice(['10.1.0.1', '10.1.0.2']))).toBe(true)
  expect(differs({ ...base(), ports: [{ name: '', protocol: 'UDP', port: 8080 }] })).toBe(true)
  const [first, second] = base().endpoints as [EndpointSlice['endpoints'][0], EndpointSlice['endpoints'][0]]
  expect(differs({ ...base(), endpoints: [first] })).toBe(true)
  expect(differs({ ...base(), endpoints: [{ ...first, zoneHints: ['y'] }, second] })).toBe(true)
  expect(differs({ ...base(), endpoints: [{ ...first, nodeHints: ['y'] }, second] })).toBe(true)
  expect(differs({ ...base(), endpoints: [{ ...first, ready: false }, second] })).toBe(true)
  expect(differs({ ...base(), endpoints: [{ ...first, nodeName: 'b' }, second] })).toBe(true)
})
