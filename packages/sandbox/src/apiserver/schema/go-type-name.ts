import type { FieldType, Scalar } from './schema.ts'

const scalarTypes: Readonly<Partial<Record<Scalar, string>>> = {
  bytes: '[]uint8',
  Time: 'v1.Time',
  MicroTime: 'v1.MicroTime',
  Quantity: 'resource.Quantity',
  IntOrString: 'intstr.IntOrString',
  Raw: 'runtime.RawExtension',
  Fields: 'v1.FieldsV1',
}

/** A type as Go prints it in error messages of the API. */
export function goTypeName(type: FieldType): string {
  switch (type.kind) {
    case 'scalar':
      return scalarTypes[type.scalar] ?? type.scalar
    case 'message':
      return `v1.${type.message.name.split('.')[1]}`
    case 'list':
      return `[]${goTypeName(type.of)}`
    case 'map':
      return `map[string]${goTypeName(type.of)}`
  }
}
