import { describe, expect, test } from 'vitest'
import { clientKey, decodeAddress, encodeAddress, hostKey, isSameHost, setPort } from './socket-address.ts'

describe('socket addresses', () => {
  test.each([
    ['10.1.2.3', 80],
    ['255.255.255.255', 65535],
    ['fd00::1', 443],
    ['::1', 1],
  ])('decodeAddress() reads what encodeAddress() made of %s port %d', (ip, port) => {
    expect(decodeAddress(encodeAddress(ip, port))).toEqual({ ip, port })
  })

  test('encodeAddress() lays an IPv4 address out as struct sockaddr_in', () => {
    const bytes = encodeAddress('10.1.2.3', 0x1234)
    expect(bytes).toHaveLength(16)
    expect([...bytes.subarray(2, 8)]).toEqual([0x12, 0x34, 10, 1, 2, 3])
  })

  test('encodeAddress() refuses what is not an address', () => {
    expect(() => encodeAddress('web', 80)).toThrow('Cannot make an address of "web"')
  })

  test('setPort() changes the port only', () => {
    const bytes = encodeAddress('fd00::1', 1)
    setPort(bytes, 65000)
    expect(decodeAddress(bytes)).toEqual({ ip: 'fd00::1', port: 65000 })
  })

  test.each([
    ['10.0.0.1', '10.0.0.2'],
    ['fd00::1', 'fd00::2'],
  ])('%s and %s are different hosts, whatever the port', (one, other) => {
    const [a, sameHost, b] = [encodeAddress(one, 1), encodeAddress(one, 2), encodeAddress(other, 1)]
    expect(hostKey(a)).toBe(hostKey(sameHost))
    expect(hostKey(a)).not.toBe(hostKey(b))
    expect(isSameHost(a, sameHost)).toBe(true)
    expect(isSameHost(a, b)).toBe(false)
    expect(clientKey(a)).not.toBe(clientKey(sameHost))
    expect(clientKey(a)).not.toBe(clientKey(b))
  })
})
