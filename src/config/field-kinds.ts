// The kinds of fields in a configuration file. A table of them is the only declaration of a field: types, defaults, decoding,
// encoding, validation and documentation follow from it.

/** `T` is the type in memory. */
interface FieldOf<K extends string, T> {
  readonly kind: K
  /** The value that an absent field gets. */
  readonly default: T
  readonly help: string
  /**
   * The meaning of an explicit zero ("", 0, "0s", false) in a file. Go keeps some fields by value, where zero is the same as
   * absent and becomes the default, and others by pointer, where zero is a value.
   */
  readonly zero: 'is-a-value' | 'means-default'
  /** Left out of a written file while it holds its default. Everything else is always written. */
  readonly omitDefault?: boolean
  /** What is allowed; undefined for a valid value. */
  readonly check?: (value: T) => string | undefined
  /** For fields that kube-proxy no longer has: the warning about them. */
  readonly legacy?: string
}

export type StringField = FieldOf<'string', string>
export type BoolField = FieldOf<'bool', boolean>
/** `annotated`: for Services with the annotation. */
export type BoolOrAnnotatedField = FieldOf<'bool|annotated', boolean | 'annotated'>
export type Int32Field = FieldOf<'int32', number>
export type NullableInt32Field = FieldOf<'int32?', number | null>
export type Uint32Field = FieldOf<'uint32', number>
export type FloatField = FieldOf<'float', number>
/** Milliseconds in memory (the name gets the suffix `Ms`), Go's "1h2m" in a file. */
export type DurationField = FieldOf<'duration', number>
/** A duration that a file may also give as a number of nanoseconds. */
export type DurationOrNanosField = FieldOf<'duration|nanos', number>
/** A number of bytes in memory, a Kubernetes quantity ("4Ki") in a file. */
export type QuantityField = FieldOf<'quantity', number>
export interface StringListField extends FieldOf<'strings', readonly string[]> {
  /** The check of one element. */
  readonly each?: (value: string) => string | undefined
}
export type BoolMapField = FieldOf<'bools', Readonly<Record<string, boolean>>>

export interface VmoduleItem {
  readonly filePattern: string
  readonly verbosity: number
}
export type VmoduleField = FieldOf<'vmodule', readonly VmoduleItem[]>

export interface ObjectField<T extends FieldTable = FieldTable> {
  readonly kind: 'object'
  readonly help: string
  readonly fields: T
  /** As in kube-proxy, the block is validated only when this mode is active. */
  readonly onlyInMode?: string
}

export type LeafField =
  | StringField
  | BoolField
  | BoolOrAnnotatedField
  | Int32Field
  | NullableInt32Field
  | Uint32Field
  | FloatField
  | DurationField
  | DurationOrNanosField
  | QuantityField
  | StringListField
  | BoolMapField
  | VmoduleField
export type Field = LeafField | ObjectField
export interface FieldTable {
  readonly [name: string]: Field
}

type NameInMemory<K, F> = F extends { kind: 'duration' | 'duration|nanos' } ? (K extends string ? `${K}Ms` : K) : K

/** The TypeScript type of what a table describes. */
export type Infer<T extends FieldTable> = {
  readonly [K in keyof T as NameInMemory<K, T[K]>]: T[K] extends ObjectField<infer Sub>
    ? Infer<Sub>
    : T[K] extends FieldOf<string, infer V>
      ? V
      : never
}

type Options<T> = Partial<Pick<FieldOf<string, T>, 'default' | 'zero' | 'omitDefault' | 'check' | 'legacy'>>

function leaf<K extends LeafField['kind'], T>(kind: K, zeroValue: T) {
  return (help: string, options: Options<T> = {}): FieldOf<K, T> => ({
    kind,
    help,
    default: zeroValue,
    zero: 'is-a-value',
    ...options,
  })
}

export const string = leaf<'string', string>('string', '')
export const bool = leaf<'bool', boolean>('bool', false)
export const boolOrAnnotated = leaf<'bool|annotated', boolean | 'annotated'>('bool|annotated', false)
export const int32 = leaf<'int32', number>('int32', 0)
export const nullableInt32 = leaf<'int32?', number | null>('int32?', null)
export const uint32 = leaf<'uint32', number>('uint32', 0)
export const float = leaf<'float', number>('float', 0)
export const duration = leaf<'duration', number>('duration', 0)
export const durationOrNanos = leaf<'duration|nanos', number>('duration|nanos', 0)
export const quantity = leaf<'quantity', number>('quantity', 0)
export const strings = (help: string, options: Pick<StringListField, 'each'> = {}): StringListField => ({
  ...leaf<'strings', readonly string[]>('strings', [])(help),
  ...options,
})
export const bools = leaf<'bools', Readonly<Record<string, boolean>>>('bools', {})
export const vmodule = leaf<'vmodule', readonly VmoduleItem[]>('vmodule', [])

export function object<T extends FieldTable>(
  help: string,
  fields: T,
  options: Pick<ObjectField, 'onlyInMode'> = {},
): ObjectField<T> {
  return { kind: 'object', help, fields, ...options }
}

/** The name that a field of a file has in memory. */
export function nameInMemory(name: string, field: Field): string {
  return field.kind === 'duration' || field.kind === 'duration|nanos' ? `${name}Ms` : name
}
