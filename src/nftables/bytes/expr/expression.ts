// What every kind of expression gives: how its attributes are written and read.

import type { Expression } from '../../types.ts'
import type { Codec } from '../../../netlink/attributes.ts'
import type { Writer } from '../../../netlink/writer.ts'

export type Kind = Expression['kind']
export type ExpressionOf<K extends Kind> = Extract<Expression, { kind: K }>

/** `T extends T` makes the omission happen in each member of the union on its own. */
type WithoutKind<T> = T extends T ? Omit<T, 'kind'> : never

export interface ExpressionCodec<K extends Kind> {
  readonly kind: K
  /** The kernel's name for it. Two kinds may share one: the kernel's `meta` both loads and sets. */
  readonly name: string
  write(writer: Writer, expression: ExpressionOf<K>): void
  read(view: DataView, start: number, end: number): ExpressionOf<K> | undefined
}

/** An expression whose attributes are its fields. */
export function expression<K extends Kind>(
  kind: K,
  name: string,
  attributes: Codec<WithoutKind<ExpressionOf<K>>>,
): ExpressionCodec<K> {
  return {
    kind,
    name,
    write(writer, value) {
      attributes.write(writer, value as unknown as WithoutKind<ExpressionOf<K>>)
    },
    read(view, start, end) {
      const fields = attributes.read(view, start, end)
      return fields === undefined ? undefined : ({ kind, ...fields } as unknown as ExpressionOf<K>)
    },
  }
}
