// What a client accepts: the encoding, and the shape that an object is turned into before it is encoded.

import { ApiError } from '../api-error.ts'

export interface Form {
  readonly encoding: 'json' | 'yaml' | 'protobuf'
  readonly shape: 'object' | 'table' | 'metadata'
}

export const jsonForm: Form = { encoding: 'json', shape: 'object' }

const encodings = {
  'application/json': 'json',
  'application/yaml': 'yaml',
  'application/vnd.kubernetes.protobuf': 'protobuf',
  'application/*': 'json',
  '*/*': 'json',
} as const

const shapes: Readonly<Record<string, Form['shape']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadata',
}

/** The first form of the header that the server can make; a 406 when there is none. */
export function negotiate(accept: string | undefined): Form {
  if (accept === undefined || accept === '') return jsonForm
  for (const part of accept.split(',')) {
    const form = parseForm(part)
    if (form !== undefined) return form
  }
  const message = `406: Not Acceptable\n\nAvailable representations: ${available.join(', ')}`
  throw new ApiError(406, 'NotAcceptable', message, {})
}

const available = ['application/json', 'application/yaml', 'application/vnd.kubernetes.protobuf']

function parseForm(part: string): Form | undefined {
  const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim())
  const encoding = encodings[type as keyof typeof encodings]
  if (encoding === undefined) return undefined
  const parameter = (name: string) => parameters.find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1)
  const as = parameter('as')
  if (as === undefined) return { encoding, shape: 'object' }
  const shape = shapes[as]
  // Tables in protobuf are not offered: every client that asks for them offers JSON, too.
  if (shape === undefined || encoding === 'protobuf' || parameter('g') !== 'meta.k8s.io') return undefined
  return (parameter('v') ?? 'v1') === 'v1' ? { encoding, shape } : undefined
}
