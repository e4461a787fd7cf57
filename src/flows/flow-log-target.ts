// What `--flow-log` says.

export type FlowLogTarget =
  | { readonly kind: 'none' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'otlp'; readonly url: URL }

const ALLOWED = 'must be the absolute path of a file, or otlp(http://HOST:PORT)'

/** Throws a RangeError that says what is allowed. */
export function parseFlowLogTarget(text: string): FlowLogTarget {
  if (text === '') return { kind: 'none' }
  const [, address] = /^otlp\((.*)\)$/.exec(text) ?? []
  if (address === undefined) {
    if (!text.startsWith('/') || text.endsWith('/')) throw new RangeError(ALLOWED)
    return { kind: 'file', path: text }
  }
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) throw new RangeError(ALLOWED)
  // Whoever may list processes could read it.
  if (url.username !== '' || url.password !== '') throw new RangeError('must have no password in the URL')
  // As OpenTelemetry's exporters read an endpoint without a path.
  if (url.pathname === '/') url.pathname = '/v1/logs'
  return { kind: 'otlp', url }
}
