// The layout of the maps with frontends and their backends. The proxy writes them, the BPF programs read them.
//
// Each family has three maps. In the first, the key is what a client dials: address, port, protocol. A node port has the address 0.0.0.0
// or ::, and each address of the node on which node ports are open has an element with port and protocol 0. The value
// says for pods and for the node which list of backends they get, and how long it is; 0: the rules decide. In the second, the key is a list and a
// place in it, from 1 on; the value is the address and port of a backend. The third has the backends of UDP as keys, after the number of their list: a
// flow stays with its backend while that is there.
//
// Addresses and ports are in network byte order, as the kernel gives them to a program; the rest is in this machine's order.

import type { Buffer } from 'node:buffer'
import { decodeHost32, host16, host32 } from '../lib/endian.ts'
import { type Bytes, type Family, asBytes, bytesOf, formatIp } from '../lib/ip.ts'

const ADDRESS_LENGTH: Readonly<Record<Family, number>> = { 4: 4, 6: 16 }

/** The cookie of a network namespace. Before a frontend's key, that is the key of what was seen from there. */
export const NETNS_LENGTH = 8

/** IP protocol numbers. */
export const IPPROTO = { TCP: 6, UDP: 17 } as const

/** Where the parts of keys and values begin. */
export const layouts = { 4: layoutOf(4), 6: layoutOf(6) } as const

export type Layout = ReturnType<typeof layoutOf>

function layoutOf(family: Family) {
  const port = ADDRESS_LENGTH[family]
  const protocol = port + 2
  return {
    family,
    /** In frontend keys and in backend values. */
    port,
    protocol,
    frontends: { keyLength: protocol + 2, valueLength: 16 },
    backends: { keyLength: 8, valueLength: port + 4 },
    live: { keyLength: 4 + port + 4, valueLength: 4 },
    /** By what was dialled and the chosen backend: connections, and flows of UDP. */
    counts: { keyLength: 2 * (port + 4), valueLength: 8 },
    /** What was seen of a call: the backend, with affinity, and until when that is trusted. */
    seen: { keyLength: NETNS_LENGTH + protocol + 2, valueLength: port + 4 + 8 },
    trustedUntil: port + 4,
  }
}

/**
 * The count of a list with session affinity: it has no places. The rules know the backend of a client, and what was seen of a call says
 * which one that was.
 */
export const STICKY = 0xffff_ffff

/** Where a frontend's value has what. */
export const CHOICE = { podsList: 0, podsCount: 4, nodeList: 8, nodeCount: 12 } as const

/** A list in the kernel, and how many places it has. */
export interface ListRange {
  readonly list: number
  readonly count: number
}

export const NO_LIST: ListRange = { list: 0, count: 0 }

/** `address` undefined: a node port. */
export function frontendKey(
  family: Family,
  { address, port, protocol }: { address: Bytes | undefined; port: number; protocol: number },
): Bytes {
  const dialled = address ?? asBytes('\0'.repeat(ADDRESS_LENGTH[family]))
  return asBytes(dialled + networkPort(port) + host16(protocol))
}

export function choiceValue(pods: ListRange, node: ListRange): Bytes {
  return asBytes(host32(pods.list) + host32(pods.count) + host32(node.list) + host32(node.count))
}

/** An address of the node on which node ports are open. */
export function nodeAddressKey(address: Bytes): Bytes {
  return asBytes(address + '\0'.repeat(4))
}

/** At a loopback address, only for the node itself: pods have one of their own. */
export function nodeAddressValue(isLoopback: boolean): Bytes {
  return choiceValue({ list: isLoopback ? 1 : 0, count: 0 }, NO_LIST)
}

export function backendKey(list: number, place: number): Bytes {
  return asBytes(host32(list) + host32(place))
}

export function backendValue(address: Bytes, port: number): Bytes {
  return asBytes(address + networkPort(port) + '\0\0')
}

/** The key of a backend of UDP. */
export function liveKey(list: number, address: Bytes, port: number): Bytes {
  return asBytes(host32(list) + backendValue(address, port))
}

export const LIVE_VALUE = host32(1)

function networkPort(port: number): Bytes {
  return bytesOf(port >> 8, port & 0xff)
}

/** The value for a socket, by its cookie, in 32-bit words: the address that the process dialled, and the chosen backend. */
export const REMEMBERED = { dialled: 0, dialledPort: 4, chosen: 5, chosenPort: 9, words: 10 } as const

/**
 * A flow of a socket of UDP: what it dialled, the list and the backend that it got. IPv4 addresses as ::ffff:10.0.0.1. The list 0: it goes by
 * the rules. A port 0: there is none.
 */
export const FLOW = { dialled: 0, dialledPort: 16, list: 20, chosen: 24, chosenPort: 40, length: 48 } as const

/** The flows of a socket, by its cookie. A resolver asks three servers at most; what dials more frontends goes by the rules. */
export const FLOWS = { count: 3, valueLength: 3 * FLOW.length } as const

/**
 * A call that is left to the rules, and what its socket got. The first part is known when it is made: the namespace, the key of
 * what it dials, with room for the longest, the number of the family, and the list of backends.
 */
export const CALL = {
  netns: 0,
  dialled: NETNS_LENGTH,
  family: 28,
  list: 32,
  local: 40,
  localPort: 56,
  length: 64,
} as const
export const CALLED_LENGTH = CALL.local

export interface SeenCall {
  readonly family: Family
  readonly protocol: number
  readonly netns: bigint
  readonly list: number
  /** Of the namespace and what it dials. */
  readonly key: Bytes
  /** What a tracker knows of it where nothing has translated it. */
  readonly tuple: { readonly src: string; readonly sport: number; readonly dst: string; readonly dport: number }
}

export function decodeCall(value: Buffer): SeenCall {
  const family = value.readUInt32LE(CALL.family) === 4 ? 4 : 6
  const { port, protocol, frontends } = layouts[family]
  const address = (at: number) => formatIp(asBytes(value.toString('latin1', at, at + ADDRESS_LENGTH[family])))
  return {
    family,
    protocol: value.readUInt16LE(CALL.dialled + protocol),
    netns: value.readBigUInt64LE(CALL.netns),
    list: value.readUInt32LE(CALL.list),
    key: asBytes(value.toString('latin1', CALL.netns, CALL.dialled + frontends.keyLength)),
    tuple: {
      src: address(CALL.local),
      sport: value.readUInt32LE(CALL.localPort),
      dst: address(CALL.dialled),
      dport: value.readUInt16BE(CALL.dialled + port),
    },
  }
}

/** Connections, and flows of UDP, that sockets have chosen, of a frontend and one of its backends. */
export interface ChosenCount {
  readonly protocol: 'TCP' | 'UDP'
  readonly frontend: { readonly address: string; readonly port: number }
  readonly backend: { readonly address: string; readonly port: number }
  readonly count: number
}

export function decodeCount(family: Family, key: Bytes, value: Bytes): ChosenCount {
  const { port, protocol, frontends } = layouts[family]
  const portAt = (at: number) => (key.charCodeAt(at) << 8) | key.charCodeAt(at + 1)
  const side = (at: number) => ({
    address: formatIp(asBytes(key.slice(at, at + ADDRESS_LENGTH[family]))),
    port: portAt(at + port),
  })
  return {
    protocol: key.charCodeAt(protocol) === IPPROTO.TCP ? 'TCP' : 'UDP',
    frontend: side(0),
    backend: side(frontends.keyLength),
    count: decodeHost32(value) + 2 ** 32 * decodeHost32(asBytes(value.slice(4))),
  }
}

/** `backend` is absent where there is no affinity. In nanoseconds of the monotonic clock. */
export function seenValue(family: Family, backend: Bytes | undefined, trustedUntil: bigint): Bytes {
  const time = host32(Number(trustedUntil & 0xffff_ffffn)) + host32(Number(trustedUntil >> 32n))
  return asBytes((backend ?? '\0'.repeat(layouts[family].trustedUntil)) + time)
}
