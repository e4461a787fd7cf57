// nftables state as data. The same types hold what we plan, what we read back from the kernel, and what a packet
// walks through in explain and in tests.

import type { Bytes } from '../lib/ip.ts'

export type NftFamily = 'ip' | 'ip6'

/** The types that the fields of our keys and values have, as nft names them. `integer` is 32 bits, host order. */
export type FieldType = 'ipv4_addr' | 'ipv6_addr' | 'inet_proto' | 'inet_service' | 'integer'

/** A table without what its sets hold. */
export interface TableOutline {
  readonly family: NftFamily
  readonly name: string
  readonly comment: string | undefined
  /** Another program switched the table off: its base chains see no packets. We never do. */
  readonly isDormant?: true
  readonly sets: ReadonlyMap<string, NftSet>
  readonly chains: ReadonlyMap<string, Chain>
}

export interface Table extends TableOutline {
  /** By set name, then by elementKey(). A set without entry here has no elements. */
  readonly elements: ReadonlyMap<string, ReadonlyMap<string, Element>>
}

/** A table that its owner may take apart. */
export interface OwnTable extends TableOutline {
  readonly elements: Map<string, Map<string, Element>>
}

/** A set, or a map when it has `data`. */
export interface NftSet {
  readonly name: string
  /**
   * The fields of the key, concatenated in this order. Empty when the set was read back and has fields that we never
   * write; its elements are then not read. The same holds for data.
   */
  readonly key: readonly FieldType[]
  /** The fields of the value, or 'verdict' for a verdict map; undefined for a plain set. */
  readonly data: readonly FieldType[] | 'verdict' | undefined
  /** Elements are ranges. */
  readonly interval: boolean
  /** Elements are added by packets and expire after timeoutMs (a rule may give its own timeout). */
  readonly dynamic: boolean
  /** Elements have no time: each is there while it counts something (`ct count`). */
  readonly timeless?: true
  readonly timeoutMs: number | undefined
  readonly size: number | undefined
  readonly comment: string | undefined
}

/**
 * An element. Key and data are in kernel layout: each field in network byte order (`integer`: host byte order), padded
 * with zeros to a multiple of 4 bytes, one after the other.
 */
export interface Element {
  readonly key: Bytes
  /** In interval sets: the last key of the range, inclusive. */
  readonly keyEnd?: Bytes
  readonly data?: Bytes
  /** In verdict maps, instead of data. */
  readonly verdict?: Jump
  /** A verdict that names no chain. We never write one: only in tables that were read from a listing of nft. */
  readonly ends?: 'accept' | 'drop' | 'return'
}

/** A verdict that names a chain. */
export interface Jump {
  readonly code: 'jump' | 'goto'
  readonly chain: string
}

/** What identifies an element within its set. */
export function elementKey(element: Element): string {
  return element.keyEnd === undefined ? element.key : element.key + element.keyEnd
}

export interface Chain {
  readonly name: string
  readonly comment: string | undefined
  /** Present on base chains. */
  readonly hook: Hook | undefined
  readonly rules: readonly Rule[]
}

export interface Hook {
  /** We never write 'route'. */
  readonly type: 'filter' | 'nat' | 'route'
  readonly hook: 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting'
  readonly priority: number
  /** What happens to packets that no rule decides about. Absent: accept, the only policy that we write. */
  readonly policy?: 'drop'
}

export interface Rule {
  /** The rule in nft's own words, without the comment: what nft would translate into the same expressions. '' when read back. */
  readonly text: string
  readonly comment: string | undefined
  readonly expressions: readonly Expression[]
  /** Given by the kernel; only on rules that were read back. */
  readonly handle?: bigint
}

/**
 * Registers are the kernel's 32-bit ones, numbered 0..15 here (NFT_REG32_00 + n on the wire). The verdict register is
 * not named: `immediate` with a verdict and `lookup` never use it otherwise.
 *
 * One expression of the kernel's virtual machine. The names and meanings are those of net/netfilter/nft_*.c and of
 * `nft --debug=netlink`. Values compared or loaded are Bytes in the byte order of the register.
 */
export type Expression =
  | {
      readonly kind: 'payload'
      readonly base: 'network' | 'transport'
      readonly offset: number
      readonly length: number
      readonly dreg: number
    }
  | { readonly kind: 'meta'; readonly key: 'l4proto' | 'mark' | 'iifname' | 'nfproto'; readonly dreg: number }
  | { readonly kind: 'metaSet'; readonly key: 'mark' | 'nftrace'; readonly sreg: number }
  | { readonly kind: 'ct'; readonly key: CtKey; readonly direction?: 'original' | 'reply'; readonly dreg: number }
  | { readonly kind: 'fib'; readonly source: 'saddr' | 'daddr'; readonly result: 'type'; readonly dreg: number }
  | { readonly kind: 'cmp'; readonly op: 'eq' | 'neq'; readonly sreg: number; readonly value: Bytes }
  | {
      readonly kind: 'bitwise'
      readonly sreg: number
      readonly dreg: number
      readonly length: number
      readonly mask: Bytes
      readonly xor: Bytes
    }
  /** Turns `length` bytes from host to network order or back, `size` bytes at a time: nothing when length is less. */
  | {
      readonly kind: 'byteorder'
      readonly op: 'ntoh' | 'hton'
      readonly sreg: number
      readonly dreg: number
      readonly length: number
      readonly size: number
    }
  | {
      readonly kind: 'lookup'
      readonly set: string
      readonly sreg: number
      /** Where a map's value goes; 'verdict' for verdict maps. */
      readonly dreg?: number | 'verdict'
      readonly invert?: boolean
    }
  | {
      readonly kind: 'numgen'
      readonly type: 'random'
      readonly modulus: number
      readonly offset: number
      readonly dreg: number
    }
  /** The kernel's jhash of `length` bytes, brought below the modulus. */
  | {
      readonly kind: 'hash'
      readonly sreg: number
      readonly length: number
      readonly seed: number
      readonly modulus: number
      readonly dreg: number
    }
  | { readonly kind: 'immediate'; readonly dreg: number; readonly value: Bytes }
  | { readonly kind: 'verdict'; readonly code: 'accept' | 'drop' | 'return' }
  | { readonly kind: 'verdict'; readonly code: 'jump' | 'goto'; readonly chain: string }
  | {
      readonly kind: 'dynset'
      readonly op: 'add' | 'update' | 'delete'
      readonly set: string
      readonly keyReg: number
      readonly dataReg?: number
      readonly timeoutMs?: number
      /** The element counts the packets that add it. */
      readonly counts?: true
      /** The element says which packets match: those above its limit. */
      readonly limits?: Extract<Expression, { kind: 'limit' | 'connlimit' }>
    }
  | {
      readonly kind: 'nat'
      readonly type: 'dnat'
      readonly family: NftFamily
      readonly addrMin: number
      readonly addrMax?: number
      readonly protoMin?: number
      readonly protoMax?: number
      readonly flags: number
    }
  | { readonly kind: 'masq'; readonly flags: number }
  | { readonly kind: 'redir'; readonly protoMin: number; readonly flags: number }
  | { readonly kind: 'reject'; readonly type: number; readonly code: number }
  | { readonly kind: 'counter'; readonly packets: bigint; readonly bytes: bigint }
  /** Sends a copy of the packet's first bytes to the program that listens to this group of nfnetlink_log. */
  | { readonly kind: 'log'; readonly group: number; readonly snaplen: number }
  /** So many packets per second, and `burst` at once; goes on with those, or with those above when `over`. */
  | { readonly kind: 'limit'; readonly perSecond: number; readonly burst: number; readonly over: boolean }
  /** Goes on while there are so many open connections at most, or only with more when `over`. */
  | { readonly kind: 'connlimit'; readonly most: number; readonly over: boolean }
  /** Something that we never write; only on rules that were read back. */
  | { readonly kind: 'unknown'; readonly name: string; readonly attributes: Bytes }

export type CtKey =
  | 'direction'
  | 'state'
  | 'status'
  | 'saddr'
  | 'daddr'
  | 'protoSrc'
  | 'protoDst'
  | 'l3proto'
  | 'protocol'
  | 'srcIp'
  | 'dstIp'
  | 'srcIp6'
  | 'dstIp6'

/** One step of a transaction on one table. Sets travel with element operations because their encoding depends on the set. */
export type Op =
  /** An owned one goes when the socket is closed by which it was made; until then no other program can change it. */
  | { readonly op: 'addTable'; readonly comment: string | undefined; readonly isOwned?: true }
  | { readonly op: 'deleteTable' }
  | { readonly op: 'addSet'; readonly set: NftSet }
  | { readonly op: 'deleteSet'; readonly name: string }
  /** Without its rules. */
  | { readonly op: 'addChain'; readonly chain: Chain }
  | { readonly op: 'deleteChain'; readonly name: string }
  /** Deletes all rules of the chain. */
  | { readonly op: 'flushChain'; readonly name: string }
  /** Behind the other rules of the chain, or before them. */
  | { readonly op: 'addRule'; readonly chain: string; readonly rule: Rule; readonly place?: 'first' }
  | { readonly op: 'addElements'; readonly set: NftSet; readonly elements: readonly Element[] }
  | { readonly op: 'deleteElements'; readonly set: NftSet; readonly elements: readonly Element[] }
  /** Those that are still there. Kernels before 6.3 do not know it. */
  | { readonly op: 'destroyElements'; readonly set: NftSet; readonly elements: readonly Element[] }
