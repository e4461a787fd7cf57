// The Distinguished Encoding Rules (X.690), as far as a certificate needs them.

import { Buffer } from 'node:buffer'

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
  context: 0xa0,
} as const

function element(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.of(tag), lengthOf(content.length), content])
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length)
  if (length < 0x100) return Buffer.of(0x81, length)
  return Buffer.of(0x82, length >> 8, length & 0xff)
}

export function sequence(...parts: readonly Buffer[]): Buffer {
  return element(TAG.sequence, Buffer.concat(parts))
}

export function set(...parts: readonly Buffer[]): Buffer {
  return element(TAG.set, Buffer.concat(parts))
}

/** An explicit tag, [0] and so on. */
export function context(number: number, content: Buffer): Buffer {
  return element(TAG.context + number, content)
}

export function boolean(value: boolean): Buffer {
  return element(TAG.boolean, Buffer.of(value ? 0xff : 0))
}

/** From its bytes, the highest first. */
export function integer(bytes: Buffer): Buffer {
  return element(TAG.integer, bytes)
}

export function bitString(bytes: Buffer, unusedBits: number): Buffer {
  return element(TAG.bitString, Buffer.concat([Buffer.of(unusedBits), bytes]))
}

export function octetString(bytes: Buffer): Buffer {
  return element(TAG.octetString, bytes)
}

export function utf8String(text: string): Buffer {
  return element(TAG.utf8String, Buffer.from(text))
}

/** `1.2.840.10045.4.3.2`: the first two numbers share a byte, the others take seven bits per byte. */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return element(TAG.objectId, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const groups = [value & 0x7f]
  for (let left = value >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80)
  return groups
}

/** `YYMMDDhhmmssZ`, good until 2049. */
export function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\D/g, '')
  return element(TAG.utcTime, Buffer.from(`${digits.slice(2, 14)}Z`))
}
