// What a value does against a JSON schema: the few words of the language that ours use.

interface Schema {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean
  readonly items?: Schema
}

/** Empty: the value is as the schema says. */
export function complaintsBySchema(schema: Schema, value: unknown, path = '$'): string[] {
  const wrong = (text: string) => [`${path}: ${text}`]
  if ('const' in schema && value !== schema.const) return wrong(`is not ${JSON.stringify(schema.const)}`)
  if (schema.enum !== undefined && !schema.enum.includes(value))
    return wrong(`is not one of ${JSON.stringify(schema.enum)}`)
  const types = schema.type === undefined ? [] : typeof schema.type === 'string' ? [schema.type] : schema.type
  if (types.length > 0 && !types.some((type) => hasType(value, type))) return wrong(`is not ${types.join(' or ')}`)
  if (Array.isArray(value)) {
    return value.flatMap((item, i) =>
      schema.items === undefined ? [] : complaintsBySchema(schema.items, item, `${path}[${i}]`),
    )
  }
  if (typeof value !== 'object' || value === null) return []
  const { properties = {}, required = [] } = schema
  const missing = required.filter((name) => !(name in value)).map((name) => `${path}: has no ${name}`)
  const known = Object.entries(value).flatMap(([name, inner]) => {
    const property = properties[name]
    if (property !== undefined) return complaintsBySchema(property, inner, `${path}.${name}`)
    return schema.additionalProperties === false ? [`${path}: has ${name}, which the schema does not know`] : []
  })
  return [...missing, ...known]
}

function hasType(value: unknown, type: string): boolean {
  if (type === 'null') return value === null
  if (type === 'array') return Array.isArray(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'object') return typeof value === 'object' && value !== null && !Array.isArray(value)
  return typeof value === type
}
