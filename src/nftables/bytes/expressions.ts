// The expressions of rules, each with the attributes that its part of net/netfilter/nft_*.c reads and dumps.

import {
  attr,
  be16,
  be32,
  be64,
  be64number,
  bytes,
  type Codec,
  constant,
  cstring,
  decodeBytes,
  forbidden,
  mapped,
  named,
  nest,
  opt,
  u8,
} from '../../netlink/attributes.ts'
import type { Expression } from '../types.ts'
import { dataValue, dataVerdict } from './data.ts'
import { NFPROTO } from './family.ts'
import { register, registerOrVerdict } from './registers.ts'
import * as uapi from './uapi.ts'

type KnownKind = Exclude<Expression['kind'], 'unknown'>

/** `T extends T` makes the omission happen in each member of the union on its own. */
type WithoutKind<T> = T extends T ? Omit<T, 'kind'> : never

type Known = {
  readonly [K in KnownKind]: {
    /** The kernel's. Two kinds may share one: the kernel's `meta` both loads and sets. */
    readonly name: string
    readonly attributes: Codec<WithoutKind<Extract<Expression, { kind: K }>>>
  }
}

/** The flags that the kernel sets by itself when it sees the registers; it dumps them, nft never sends them. */
const IMPLIED_NAT_FLAGS = uapi.NF_NAT_RANGE_MAP_IPS | uapi.NF_NAT_RANGE_PROTO_SPECIFIED

/** NFT_DYNSET_F_EXPR, which the kernel sets when there is an expression. */
const WITH_EXPRESSION = 2

/** The expression that an element gets. */
const ofElement: Codec<Expression> = {
  isNest: true,
  write: (writer, value) => expression.write(writer, value),
  read: (view, start, end) => expression.read(view, start, end),
}

const NOTHING_COUNTED: Expression = { kind: 'counter', packets: 0n, bytes: 0n }

const KNOWN: Known = {
  payload: {
    name: 'payload',
    attributes: nest({
      dreg: attr(uapi.NFTA_PAYLOAD_DREG, register),
      base: attr(
        uapi.NFTA_PAYLOAD_BASE,
        named(be32, { network: uapi.NFT_PAYLOAD_NETWORK_HEADER, transport: uapi.NFT_PAYLOAD_TRANSPORT_HEADER }),
      ),
      offset: attr(uapi.NFTA_PAYLOAD_OFFSET, be32),
      length: attr(uapi.NFTA_PAYLOAD_LEN, be32),
      sreg: forbidden(uapi.NFTA_PAYLOAD_SREG),
    }),
  },
  meta: {
    name: 'meta',
    attributes: nest({
      key: attr(
        uapi.NFTA_META_KEY,
        named(be32, {
          l4proto: uapi.NFT_META_L4PROTO,
          mark: uapi.NFT_META_MARK,
          iifname: uapi.NFT_META_IIFNAME,
          nfproto: uapi.NFT_META_NFPROTO,
        }),
      ),
      dreg: attr(uapi.NFTA_META_DREG, register),
    }),
  },
  metaSet: {
    name: 'meta',
    attributes: nest({
      key: attr(uapi.NFTA_META_KEY, named(be32, { mark: uapi.NFT_META_MARK, nftrace: uapi.NFT_META_NFTRACE })),
      sreg: attr(uapi.NFTA_META_SREG, register),
    }),
  },
  ct: {
    name: 'ct',
    attributes: nest({
      key: attr(
        uapi.NFTA_CT_KEY,
        named(be32, {
          state: uapi.NFT_CT_STATE,
          direction: uapi.NFT_CT_DIRECTION,
          status: uapi.NFT_CT_STATUS,
          saddr: uapi.NFT_CT_SRC,
          daddr: uapi.NFT_CT_DST,
          protoSrc: uapi.NFT_CT_PROTO_SRC,
          protoDst: uapi.NFT_CT_PROTO_DST,
          l3proto: uapi.NFT_CT_L3PROTOCOL,
          protocol: uapi.NFT_CT_PROTOCOL,
          srcIp: uapi.NFT_CT_SRC_IP,
          dstIp: uapi.NFT_CT_DST_IP,
          srcIp6: uapi.NFT_CT_SRC_IP6,
          dstIp6: uapi.NFT_CT_DST_IP6,
        }),
      ),
      dreg: attr(uapi.NFTA_CT_DREG, register),
      // enum ip_conntrack_dir
      direction: opt(uapi.NFTA_CT_DIRECTION, named(u8, { original: 0, reply: 1 })),
      sreg: forbidden(uapi.NFTA_CT_SREG),
    }),
  },
  fib: {
    name: 'fib',
    attributes: nest({
      dreg: attr(uapi.NFTA_FIB_DREG, register),
      result: attr(uapi.NFTA_FIB_RESULT, named(be32, { type: uapi.NFT_FIB_RESULT_ADDRTYPE })),
      source: attr(uapi.NFTA_FIB_FLAGS, named(be32, { saddr: uapi.NFTA_FIB_F_SADDR, daddr: uapi.NFTA_FIB_F_DADDR })),
    }),
  },
  cmp: {
    name: 'cmp',
    attributes: nest({
      sreg: attr(uapi.NFTA_CMP_SREG, register),
      op: attr(uapi.NFTA_CMP_OP, named(be32, { eq: uapi.NFT_CMP_EQ, neq: uapi.NFT_CMP_NEQ })),
      value: attr(uapi.NFTA_CMP_DATA, dataValue),
    }),
  },
  bitwise: {
    name: 'bitwise',
    attributes: mapped(
      nest({
        sreg: attr(uapi.NFTA_BITWISE_SREG, register),
        dreg: attr(uapi.NFTA_BITWISE_DREG, register),
        op: opt(uapi.NFTA_BITWISE_OP, constant(be32, uapi.NFT_BITWISE_BOOL)),
        length: attr(uapi.NFTA_BITWISE_LEN, be32),
        mask: attr(uapi.NFTA_BITWISE_MASK, dataValue),
        xor: attr(uapi.NFTA_BITWISE_XOR, dataValue),
      }),
      (value) => ({ ...value, op: uapi.NFT_BITWISE_BOOL }),
      ({ sreg, dreg, length, mask, xor }) => ({ sreg, dreg, length, mask, xor }),
    ),
  },
  byteorder: {
    name: 'byteorder',
    attributes: nest({
      sreg: attr(uapi.NFTA_BYTEORDER_SREG, register),
      dreg: attr(uapi.NFTA_BYTEORDER_DREG, register),
      op: attr(uapi.NFTA_BYTEORDER_OP, named(be32, { ntoh: uapi.NFT_BYTEORDER_NTOH, hton: uapi.NFT_BYTEORDER_HTON })),
      length: attr(uapi.NFTA_BYTEORDER_LEN, be32),
      size: attr(uapi.NFTA_BYTEORDER_SIZE, be32),
    }),
  },
  lookup: {
    name: 'lookup',
    attributes: mapped(
      nest({
        sreg: attr(uapi.NFTA_LOOKUP_SREG, register),
        dreg: opt(uapi.NFTA_LOOKUP_DREG, registerOrVerdict),
        set: attr(uapi.NFTA_LOOKUP_SET, cstring),
        flags: opt(uapi.NFTA_LOOKUP_FLAGS, be32),
      }),
      ({ invert, ...value }) => (invert === true ? { ...value, flags: uapi.NFT_LOOKUP_F_INV } : value),
      ({ flags, ...value }) => (flags === uapi.NFT_LOOKUP_F_INV ? { ...value, invert: true } : value),
    ),
  },
  numgen: {
    name: 'numgen',
    attributes: nest({
      dreg: attr(uapi.NFTA_NG_DREG, register),
      modulus: attr(uapi.NFTA_NG_MODULUS, be32),
      type: attr(uapi.NFTA_NG_TYPE, named(be32, { random: uapi.NFT_NG_RANDOM })),
      offset: attr(uapi.NFTA_NG_OFFSET, be32),
    }),
  },
  hash: {
    name: 'hash',
    attributes: mapped(
      nest({
        sreg: attr(uapi.NFTA_HASH_SREG, register),
        dreg: attr(uapi.NFTA_HASH_DREG, register),
        length: attr(uapi.NFTA_HASH_LEN, be32),
        modulus: attr(uapi.NFTA_HASH_MODULUS, be32),
        seed: attr(uapi.NFTA_HASH_SEED, be32),
        offset: opt(uapi.NFTA_HASH_OFFSET, constant(be32, 0)),
        type: attr(uapi.NFTA_HASH_TYPE, constant(be32, uapi.NFT_HASH_JENKINS)),
      }),
      (value) => ({ ...value, type: uapi.NFT_HASH_JENKINS }),
      ({ sreg, dreg, length, modulus, seed }) => ({ sreg, dreg, length, modulus, seed }),
    ),
  },
  immediate: {
    name: 'immediate',
    attributes: nest({
      dreg: attr(uapi.NFTA_IMMEDIATE_DREG, register),
      value: attr(uapi.NFTA_IMMEDIATE_DATA, dataValue),
    }),
  },
  verdict: {
    name: 'immediate',
    attributes: mapped(
      nest({
        dreg: attr(uapi.NFTA_IMMEDIATE_DREG, constant(be32, uapi.NFT_REG_VERDICT)),
        verdict: attr(uapi.NFTA_IMMEDIATE_DATA, dataVerdict),
      }),
      (verdict) => ({ dreg: uapi.NFT_REG_VERDICT, verdict }),
      ({ verdict }) => verdict,
    ),
  },
  dynset: {
    name: 'dynset',
    attributes: mapped(
      nest({
        keyReg: attr(uapi.NFTA_DYNSET_SREG_KEY, register),
        dataReg: opt(uapi.NFTA_DYNSET_SREG_DATA, register),
        op: attr(
          uapi.NFTA_DYNSET_OP,
          named(be32, {
            add: uapi.NFT_DYNSET_OP_ADD,
            update: uapi.NFT_DYNSET_OP_UPDATE,
            delete: uapi.NFT_DYNSET_OP_DELETE,
          }),
        ),
        timeoutMs: opt(uapi.NFTA_DYNSET_TIMEOUT, be64number),
        set: attr(uapi.NFTA_DYNSET_SET_NAME, cstring),
        flags: opt(uapi.NFTA_DYNSET_FLAGS, be32),
        expr: opt(uapi.NFTA_DYNSET_EXPR, ofElement),
        expressions: forbidden(uapi.NFTA_DYNSET_EXPRESSIONS),
      }),
      ({ counts, limits, ...value }) => {
        const expr = counts === true ? NOTHING_COUNTED : limits
        return expr === undefined ? value : { ...value, expr }
      },
      // The kernel always dumps the flags; another one inverts the match, which we never write.
      ({ flags = 0, expr, timeoutMs = 0, ...rest }) => {
        // It dumps a time of nothing where there is none.
        const value = timeoutMs === 0 ? rest : { ...rest, timeoutMs }
        if (expr === undefined) return flags === 0 ? value : undefined
        if ((flags & ~WITH_EXPRESSION) !== 0) return undefined
        if (expr.kind === 'limit' || expr.kind === 'connlimit') return { ...value, limits: expr }
        return expr.kind === 'counter' ? { ...value, counts: true } : undefined
      },
    ),
  },
  nat: {
    name: 'nat',
    attributes: mapped(
      nest({
        type: attr(uapi.NFTA_NAT_TYPE, named(be32, { dnat: uapi.NFT_NAT_DNAT })),
        family: attr(uapi.NFTA_NAT_FAMILY, named(be32, NFPROTO)),
        addrMin: attr(uapi.NFTA_NAT_REG_ADDR_MIN, register),
        addrMax: opt(uapi.NFTA_NAT_REG_ADDR_MAX, register),
        protoMin: opt(uapi.NFTA_NAT_REG_PROTO_MIN, register),
        protoMax: opt(uapi.NFTA_NAT_REG_PROTO_MAX, register),
        flags: opt(uapi.NFTA_NAT_FLAGS, be32),
      }),
      ({ flags, ...value }) => (flags === 0 ? value : { ...value, flags }),
      // A maximum that is the minimum is left out: the kernel dumps both registers even when only the minimum was given.
      ({ addrMax, protoMax, flags, ...value }) => ({
        ...value,
        ...(addrMax === undefined || addrMax === value.addrMin ? {} : { addrMax }),
        ...(protoMax === undefined || protoMax === value.protoMin ? {} : { protoMax }),
        flags: (flags ?? 0) & ~IMPLIED_NAT_FLAGS,
      }),
    ),
  },
  masq: {
    name: 'masq',
    attributes: mapped(
      nest({
        flags: opt(uapi.NFTA_MASQ_FLAGS, be32),
        protoMin: forbidden(uapi.NFTA_MASQ_REG_PROTO_MIN),
        protoMax: forbidden(uapi.NFTA_MASQ_REG_PROTO_MAX),
      }),
      ({ flags }) => (flags === 0 ? {} : { flags }),
      ({ flags = 0 }) => ({ flags }),
    ),
  },
  redir: {
    name: 'redir',
    attributes: mapped(
      nest({
        protoMin: attr(uapi.NFTA_REDIR_REG_PROTO_MIN, register),
        protoMax: opt(uapi.NFTA_REDIR_REG_PROTO_MAX, register),
        flags: opt(uapi.NFTA_REDIR_FLAGS, be32),
      }),
      ({ protoMin, flags }) => (flags === 0 ? { protoMin } : { protoMin, flags }),
      // The kernel dumps a maximum even when only the minimum was given.
      ({ protoMin, protoMax = protoMin, flags = 0 }) => (protoMax === protoMin ? { protoMin, flags } : undefined),
    ),
  },
  reject: {
    name: 'reject',
    attributes: mapped(
      nest({ type: attr(uapi.NFTA_REJECT_TYPE, be32), code: opt(uapi.NFTA_REJECT_ICMP_CODE, u8) }),
      (value) => value,
      // The kernel dumps no code with a TCP reset, where it means nothing.
      ({ type, code = 0 }) => ({ type, code }),
    ),
  },
  counter: {
    name: 'counter',
    attributes: nest({
      bytes: attr(uapi.NFTA_COUNTER_BYTES, be64),
      packets: attr(uapi.NFTA_COUNTER_PACKETS, be64),
    }),
  },
  log: {
    name: 'log',
    attributes: mapped(
      nest({
        group: attr(uapi.NFTA_LOG_GROUP, be16),
        snaplen: opt(uapi.NFTA_LOG_SNAPLEN, be32),
        qthreshold: opt(uapi.NFTA_LOG_QTHRESHOLD, be16),
        prefix: forbidden(uapi.NFTA_LOG_PREFIX),
        level: forbidden(uapi.NFTA_LOG_LEVEL),
      }),
      ({ group, snaplen }) => ({ group, snaplen }),
      // A threshold makes the kernel wait for more packets, which we never ask for.
      ({ group, snaplen = 0, qthreshold = 0 }) => (qthreshold === 0 ? { group, snaplen } : undefined),
    ),
  },
  limit: {
    name: 'limit',
    attributes: mapped(
      nest({
        rate: attr(uapi.NFTA_LIMIT_RATE, be64number),
        unit: attr(uapi.NFTA_LIMIT_UNIT, constant(be64number, 1)),
        burst: attr(uapi.NFTA_LIMIT_BURST, be32),
        type: opt(uapi.NFTA_LIMIT_TYPE, constant(be32, uapi.NFT_LIMIT_PKTS)),
        flags: opt(uapi.NFTA_LIMIT_FLAGS, be32),
      }),
      ({ perSecond, burst, over }) => ({
        rate: perSecond,
        unit: 1,
        burst,
        type: uapi.NFT_LIMIT_PKTS,
        flags: over ? uapi.NFT_LIMIT_F_INV : 0,
      }),
      ({ rate, burst, flags = 0 }) => ({ perSecond: rate, burst, over: (flags & uapi.NFT_LIMIT_F_INV) !== 0 }),
    ),
  },
  connlimit: {
    name: 'connlimit',
    attributes: mapped(
      nest({ most: attr(uapi.NFTA_CONNLIMIT_COUNT, be32), flags: opt(uapi.NFTA_CONNLIMIT_FLAGS, be32) }),
      ({ most, over }) => ({ most, flags: over ? uapi.NFT_CONNLIMIT_F_INV : 0 }),
      ({ most, flags = 0 }) => ({ most, over: (flags & uapi.NFT_CONNLIMIT_F_INV) !== 0 }),
    ),
  },
}

/** By the kernel's name: the kinds that may be meant by it. */
const KINDS = new Map<string, KnownKind[]>()
for (const [kind, { name }] of Object.entries(KNOWN)) {
  KINDS.set(name, [...(KINDS.get(name) ?? []), kind as KnownKind])
}

/** Where the attributes of an expression stand, to be read once its name is known. */
const span: Codec<{ readonly start: number; readonly end: number }> = {
  isNest: true,
  write() {},
  read: (_, start, end) => ({ start, end }),
}

const header = nest({ name: attr(uapi.NFTA_EXPR_NAME, cstring), data: opt(uapi.NFTA_EXPR_DATA, span) })

/** One expression: its name and its attributes. What we do not know is kept as it came, as kind 'unknown'. */
export const expression: Codec<Expression> = {
  isNest: true,
  write(writer, value) {
    writer.begin(uapi.NFTA_EXPR_NAME)
    cstring.write(writer, value.kind === 'unknown' ? value.name : KNOWN[value.kind].name)
    writer.end()
    writer.beginNested(uapi.NFTA_EXPR_DATA)
    if (value.kind === 'unknown') bytes.write(writer, value.attributes)
    else (KNOWN[value.kind].attributes as Codec<unknown>).write(writer, value)
    writer.end()
  },
  read(view, start, end) {
    const { name, data = { start: 0, end: 0 } } = header.read(view, start, end) ?? {}
    if (name === undefined) return undefined
    for (const kind of KINDS.get(name) ?? []) {
      const fields = KNOWN[kind].attributes.read(view, data.start, data.end)
      if (fields !== undefined) return { kind, ...fields } as Expression
    }
    return { kind: 'unknown', name, attributes: decodeBytes(view, data.start, data.end) }
  },
}
