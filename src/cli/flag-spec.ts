import type { Field, FieldTable, LeafField } from '../config/field-kinds.ts'
import { configurationFields } from '../config/fields.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import type { FlagKindName, flagKinds } from './flag-kinds.ts'

/** The order of the groups in `--help`. */
export const flagGroups = [
  'Program',
  'API server',
  'Node and servers',
  'Proxy mode',
  'Traffic from pods',
  'Connection tracking',
  'iptables mode',
  'ipvs mode',
  'Logging',
  'Old flags that still work',
  'Flags that are accepted and do nothing',
] as const
export type FlagGroup = (typeof flagGroups)[number]

/** A configuration that flags are being written into. */
export type Draft = DeepMutable<KubeProxyConfiguration>
type DeepMutable<T> = T extends readonly (infer E)[]
  ? readonly E[]
  : T extends object
    ? { -readonly [K in keyof T]: DeepMutable<T[K]> }
    : T

type PathsOf<T> = {
  [K in keyof T & string]: NonNullable<T[K]> extends readonly unknown[]
    ? K
    : string extends keyof NonNullable<T[K]>
      ? K
      : NonNullable<T[K]> extends object
        ? `${K}.${PathsOf<NonNullable<T[K]>>}`
        : K
}[keyof T & string]

/** The path of a setting in the configuration: `conntrack.udpTimeoutMs`. */
export type ConfigPath = PathsOf<KubeProxyConfiguration>

export type ValueOf<K extends FlagKindName> = (typeof flagKinds)[K] extends { print(value: infer T): string }
  ? T
  : never

export interface FlagSpec<K extends FlagKindName = FlagKindName> {
  readonly name: string
  readonly kind: K
  readonly help: string
  readonly group: FlagGroup
  readonly short?: string
  /** The setting that the flag sets, when it is as simple as that. Its default is then the flag's. */
  readonly field?: ConfigPath
  /** What the flag does to the configuration otherwise. `given` is everything else on the command line. */
  apply?(draft: Draft, value: ValueOf<K>, given: ReadonlyMap<string, unknown>): void
  /** The default where there is no field; absent for the kind's empty value. */
  readonly default?: ValueOf<K>
  /** Paths that errors about this flag's value carry, besides `field`. */
  readonly errorPaths?: readonly string[]
  /** `outranks`: effective with `--config` too. Flags that set nothing in the configuration always are. */
  readonly withConfig?: 'outranks'
  /** The warning that the use of the flag gets. */
  readonly warning?: string
}

type Ungrouped<K extends FlagKindName = FlagKindName> = Omit<FlagSpec<K>, 'group'>

/** Makes sure that an entry's default and `apply` fit its kind. */
export function flag<K extends FlagKindName>(spec: Ungrouped<K>): Ungrouped {
  return spec
}

const flagKindOf: Readonly<Record<LeafField['kind'], FlagKindName>> = {
  string: 'string',
  bool: 'bool',
  'bool|annotated': 'boolOrAnnotated',
  int32: 'int32',
  'int32?': 'int32',
  uint32: 'level',
  float: 'float',
  duration: 'duration',
  'duration|nanos': 'duration',
  quantity: 'quantity',
  strings: 'strings',
  bools: 'bools',
  vmodule: 'vmodule',
}

/** A flag that sets a field of the file. It has the field's kind and help, unless `special` has others. */
export function fieldFlag(name: string, field: ConfigPath, special: Partial<Ungrouped> = {}): Ungrouped {
  const { kind, help } = fieldAt(field)
  return { name, field, kind: flagKindOf[kind], help, ...special }
}

function fieldAt(path: ConfigPath): LeafField {
  let fields: FieldTable = configurationFields
  let field: Field | undefined
  for (const name of path.replace(/Ms$/, '').split('.')) {
    field = fields[name]
    if (field?.kind === 'object') fields = field.fields
  }
  if (field === undefined || field.kind === 'object') throw new Error(`Cannot find the field ${path} in the file`)
  return field
}

export function inGroup(group: FlagGroup, flags: readonly Ungrouped[]): FlagSpec[] {
  return flags.map((spec) => ({ ...spec, group }))
}

/** Sets the setting at a path. */
export function writePath(draft: Draft, path: ConfigPath, value: unknown): void {
  const names = path.split('.')
  const last = names.pop()!
  const holder = names.reduce<unknown>((part, name) => (part as Record<string, unknown>)[name], draft)
  ;(holder as Record<string, unknown>)[last] = value
}
