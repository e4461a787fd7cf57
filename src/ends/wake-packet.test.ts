import { expect, test } from 'vitest'
import { encodeWakePacket } from './wake-packet.ts'

const flow = { src: '10.9.2.2', dst: '10.9.1.2', sport: 8080, dport: 42064 }
const flow6 = { src: 'fd96::1', dst: 'fd09:1::2', sport: 80, dport: 60876 }
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

test('an answer is a SYN-ACK of number 0, with a right checksum', () => {
  expect(hex(encodeWakePacket(4, flow, 'answer'))).toBe(
    '4500002800000000400600000a0902020a0901021f90a450000000000000000050120400d0dc0000',
  )
  // As a host received it.
  expect(hex(encodeWakePacket(6, flow6, 'answer')).slice(80)).toBe('0050edcc000000000000000050120400c3110000')
})

test('a request is a SYN', () => {
  const packet = encodeWakePacket(6, flow6, 'request')
  expect(hex(packet).slice(0, 16)).toBe('6000000000140640')
  expect(packet[40 + 13]).toBe(0x02)
})
