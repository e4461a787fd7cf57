// Every kind of expression, and the codec that picks the right one by its name.

import type { Expression } from '../../types.ts'
import { attr, bytes, type Codec, cstring, nest, opt, decodeBytes } from '../../../netlink/attributes.ts'
import { NFTA_EXPR_DATA, NFTA_EXPR_NAME } from '../uapi.ts'
import { bitwise } from './bitwise.ts'
import { byteorder } from './byteorder.ts'
import { cmp } from './cmp.ts'
import { counter } from './counter.ts'
import { ct } from './ct.ts'
import { dynset } from './dynset.ts'
import type { ExpressionCodec, Kind } from './expression.ts'
import { fib } from './fib.ts'
import { immediate, verdict } from './immediate.ts'
import { limit } from './limit.ts'
import { log } from './log.ts'
import { lookup } from './lookup.ts'
import { masq } from './masq.ts'
import { meta, metaSet } from './meta.ts'
import { nat } from './nat.ts'
import { numgen } from './numgen.ts'
import { payload } from './payload.ts'
import { redir } from './redir.ts'
import { reject } from './reject.ts'

type KnownKind = Exclude<Kind, 'unknown'>

const CODECS: { readonly [K in KnownKind]: ExpressionCodec<K> } = {
  payload,
  meta,
  metaSet,
  ct,
  fib,
  cmp,
  bitwise,
  byteorder,
  lookup,
  numgen,
  immediate,
  verdict,
  dynset,
  nat,
  masq,
  redir,
  reject,
  counter,
  log,
  limit,
}

/** By the kernel's name: those that may be meant by it. */
const BY_NAME = new Map<string, ExpressionCodec<Kind>[]>()
for (const codec of Object.values(CODECS)) {
  const others = BY_NAME.get(codec.name) ?? []
  BY_NAME.set(codec.name, [...others, codec as unknown as ExpressionCodec<Kind>])
}

/** Where the attributes of an expression stand, to be read once its name is known. */
const span: Codec<{ readonly start: number; readonly end: number }> = {
  isNest: true,
  write() {},
  read: (_, start, end) => ({ start, end }),
}

const header = nest({ name: attr(NFTA_EXPR_NAME, cstring), data: opt(NFTA_EXPR_DATA, span) })

/** One expression: its name and its attributes. What we do not know is kept as it came, as kind 'unknown'. */
export const expression: Codec<Expression> = {
  isNest: true,
  write(writer, value) {
    writer.begin(NFTA_EXPR_NAME)
    cstring.write(writer, value.kind === 'unknown' ? value.name : CODECS[value.kind].name)
    writer.end()
    writer.beginNested(NFTA_EXPR_DATA)
    if (value.kind === 'unknown') bytes.write(writer, value.attributes)
    else (CODECS[value.kind] as ExpressionCodec<Kind>).write(writer, value)
    writer.end()
  },
  read(view, start, end) {
    const { name, data = { start: 0, end: 0 } } = header.read(view, start, end) ?? {}
    if (name === undefined) return undefined
    for (const codec of BY_NAME.get(name) ?? []) {
      const value = codec.read(view, data.start, data.end)
      if (value !== undefined) return value
    }
    return { kind: 'unknown', name, attributes: decodeBytes(view, data.start, data.end) }
  },
}
