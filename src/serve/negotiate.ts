// Which form of a page a client wants, as its Accept header says: of /flagz and /statusz as apiserver's flagz and statusz do it, of
// /metrics as Prometheus's client for Go.

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
  for (const range of parseAccept(accept)) {
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

/** The form of a page of metrics. There is always one: what has none of what is accepted is answered with text. */
export interface MetricsForm {
  readonly format: 'text' | 'protobuf'
  readonly contentType: string
}

const PROTOBUF = 'application/vnd.google.protobuf'
const MESSAGE = 'io.prometheus.client.MetricFamily'
/** How names would be written that the first versions of Prometheus did not allow. There are none, but the answer says it. */
const ESCAPINGS = ['allow-utf-8', 'underscores', 'dots', 'values']

export function negotiateMetrics(accept: string): MetricsForm {
  let escaping = 'underscores'
  const text = (): MetricsForm => ({
    format: 'text',
    contentType: `text/plain; version=0.0.4; charset=utf-8; escaping=${escaping}`,
  })
  for (const { type, params } of parseAccept(accept)) {
    const asked = params.get('escaping')
    if (asked !== undefined && ESCAPINGS.includes(asked)) escaping = asked
    if (type === PROTOBUF && params.get('proto') === MESSAGE && params.get('encoding') === 'delimited') {
      const contentType = `${PROTOBUF}; proto=${MESSAGE}; encoding=delimited; escaping=${escaping}`
      return { format: 'protobuf', contentType }
    }
    if (type === 'text/plain' && ['0.0.4', undefined].includes(params.get('version'))) return text()
  }
  return text()
}

/** What a client accepts, what it likes best first. The sort keeps the order of equals. */
function parseAccept(accept: string): MediaRange[] {
  return accept
    .split(',')
    .map(parseMediaRange)
    .sort((a, b) => b.quality - a.quality)
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
