// The layout of the maps with cluster IPs and their backends. The proxy writes them, the BPF programs read them.
//
// There is one map for each family. A key is the address and port that a client dials, and a place. The value at place 0 is the
// number of backends; the values at the places 1 to that number are the address and port of one backend each. Addresses and ports
// are in network byte order, as the kernel gives them to a program; the rest is in this machine's order.

import { host16, host32 } from '../lib/endian.ts'
import { type Bytes, type Family, asBytes, bytesOf } from '../lib/ip.ts'

const ADDRESS_LENGTH: Readonly<Record<Family, number>> = { 4: 4, 6: 16 }
const PORT_LENGTH = 2
const PLACE_LENGTH = 2

/** The most backends that a frontend can have in a map. */
export const MOST_PLACES = 0xffff

/** Where the parts of a key and of a value begin. */
export const layouts = { 4: layoutOf(4), 6: layoutOf(6) } as const

export type Layout = ReturnType<typeof layoutOf>

function layoutOf(family: Family) {
  const port = ADDRESS_LENGTH[family]
  const place = port + PORT_LENGTH
  return { family, port, place, keyLength: place + PLACE_LENGTH, valueLength: place + PLACE_LENGTH }
}

export function keyOf(address: Bytes, port: number, place: number): Bytes {
  return asBytes(address + networkPort(port) + host16(place))
}

export function backendValue(address: Bytes, port: number): Bytes {
  return asBytes(address + networkPort(port) + '\0'.repeat(PLACE_LENGTH))
}

export function countValue(family: Family, count: number): Bytes {
  return asBytes(host32(count) + '\0'.repeat(layouts[family].valueLength - 4))
}

function networkPort(port: number): Bytes {
  return bytesOf(port >> 8, port & 0xff)
}

/** The value for a socket, by its cookie, in 32-bit words: the address that the process dialled, and the chosen backend. */
export const REMEMBERED = { dialled: 0, dialledPort: 4, chosen: 5, chosenPort: 9, words: 10 } as const
