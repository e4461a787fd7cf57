// Which form of /flagz and /statusz a client wants. See negotiation.go in apiserver's flagz and statusz.

/** Text for people, or a structured object in a version and an encoding. */
export type Form =
  | { readonly kind: 'text' }
  | {
      readonly kind: 'structured'
      readonly encoding: 'json' | 'yaml'
      readonly version: 'v1beta1' | 'v1alpha1'
    }

interface MediaRange {
  readonly type: string
  readonly params: ReadonlyMap<string, string>
  readonly quality: number
}

/**
 * The first form in the client's order of preference that there is, or undefined. Structured forms must be asked for by
 * name - `application/json;g=config.k8s.io;v=v1beta1;as=Flagz` - so that a client knows which version it gets.
 */
export function negotiateForm(accept: string, objectKind: 'Flagz' | 'Statusz'): Form | undefined {
  if (accept.trim() === '') return { kind: 'text' }
  const ranges = accept.split(',').map(parseMediaRange)
  // The sort keeps the order of equals.
  for (const range of ranges.sort((a, b) => b.quality - a.quality)) {
    const form = range.quality > 0 ? formFor(range, objectKind) : undefined
    if (form !== undefined) return form
  }
  return undefined
}

function formFor({ type, params }: MediaRange, objectKind: string): Form | undefined {
  const as = params.get('as')
  if (['*/*', 'text/*', 'text/plain'].includes(type)) return as === undefined ? { kind: 'text' } : undefined
  const encoding = ({ 'application/json': 'json', 'application/yaml': 'yaml' } as const)[type]
  const version = params.get('v')
  if (encoding === undefined || as !== objectKind || params.get('g') !== 'config.k8s.io') return undefined
  if (version !== 'v1beta1' && version !== 'v1alpha1') return undefined
  return { kind: 'structured', encoding, version }
}

function parseMediaRange(text: string): MediaRange {
  const [type, ...rest] = text.split(';').map((part) => part.trim())
  const params = new Map(
    rest.map((param): [string, string] => {
      const equals = param.indexOf('=')
      return equals < 0 ? [param, ''] : [param.slice(0, equals).trim(), param.slice(equals + 1).trim()]
    }),
  )
  const quality = Number(params.get('q') ?? 1)
  return { type: type!.toLowerCase(), params, quality: Number.isNaN(quality) ? 0 : quality }
}
