// The metrics port: /metrics, and pages about this process.

import { listen, type Listener, type ListenOptions } from './listen.ts'
import { negotiateMetrics } from './negotiate.ts'
import { jsonReply, listenerFor, notFound, textReply, type Page } from './reply.ts'
import { flagzPage, statuszPage } from './zpages.ts'

interface MetricsRequest {
  readonly format: 'text' | 'protobuf'
  readonly names: ReadonlySet<string> | undefined
}

/** The part of the proxy's metrics that these pages use. */
export interface ServedMetrics {
  /** When the process started, in seconds since 1970. */
  readonly startSeconds: number
  /** In parts. */
  page(request: MetricsRequest): Promise<readonly Uint8Array[]>
  sliPage(request: MetricsRequest): Promise<readonly Uint8Array[]>
  resetSlis(): void
  readonly healthcheck: { with(name: string, type: string): { set(value: number): void } }
  readonly healthchecks: { with(name: string, type: string, status: string): { inc(): void } }
}

/** What the pages show. Functions, because most of it may change while the process runs. */
export interface MetricsPageOptions {
  readonly metrics: ServedMetrics
  readonly mode: () => string
  readonly status?: (() => string) | undefined
  /** The configuration in its external form, KubeProxyConfiguration v1alpha1. */
  readonly config: () => object
  /** Every flag and its value; undefined switches /flagz off (feature gate ComponentFlagz). */
  readonly flags: (() => Readonly<Record<string, string>>) | undefined
  /** Without the leading v; undefined switches /statusz off (feature gate ComponentStatusz). */
  readonly version: { readonly binary: string; readonly emulation: string } | undefined
  readonly profiling: () => boolean
  readonly setVerbosity: (level: number) => void
  readonly nowMs: () => number
}

export interface MetricsServerOptions extends Omit<ListenOptions, 'name' | 'handler' | 'network'> {
  readonly pages: MetricsPageOptions
}

/** Serves metricsPage(); nowhere when the address is empty. */
export function serveMetrics(options: MetricsServerOptions): Listener | undefined {
  return listen({ ...options, name: 'metrics', handler: listenerFor(metricsPage(options.pages), options.log) })
}

/** The pages of the metrics port. All are for GET and HEAD, but for the two that change something. */
export function metricsPage(options: MetricsPageOptions): Page {
  const pages = new Map<string, Page>([
    ['/metrics', prometheusPage(options, (request) => options.metrics.page(request))],
    ['/proxyMode', () => textReply(200, options.mode())],
    ['/configz', () => jsonReply(200, JSON.stringify({ 'kubeproxy.config.k8s.io': options.config() }))],
    ['/healthz', healthzPage(options)],
    ['/healthz/ping', () => textReply(200, 'ok')],
  ])
  const { flags, version } = options
  if (flags !== undefined) pages.set('/flagz', flagzPage(flags))
  const listed = [...new Set([...pages.keys()].map((path) => `/${path.split('/')[1]}`))].sort()
  if (version !== undefined) {
    const status = { version: version.binary, emulationVersion: version.emulation, paths: listed }
    const startMs = options.metrics.startSeconds * 1000
    pages.set('/statusz', statuszPage(() => ({ ...status, startMs, nowMs: options.nowMs(), details: options.status?.() }))) // oxfmt-ignore
  }
  return (request) => {
    const { path } = request
    if (path === '/metrics/slis') return sliPage(options)(request)
    const page = pages.get(path)
    if (page !== undefined) return readOnly(page)(request)
    return path.startsWith('/debug/') && options.profiling() ? debugPage(options)(request) : notFound
  }
}

function readOnly(page: Page): Page {
  return (request) => {
    if (request.method === 'GET' || request.method === 'HEAD') return page(request)
    const reply = textReply(405, 'method not allowed\n')
    return { ...reply, headers: { ...reply.headers, Allow: 'GET, HEAD' } }
  }
}

/** Metrics in the form that the client accepts; `?name[]=` leaves out the others. */
function prometheusPage(
  { metrics }: MetricsPageOptions,
  read: (request: MetricsRequest) => Promise<readonly Uint8Array[]>,
): Page {
  return async ({ accept, query }) => {
    const { format, contentType } = negotiateMetrics(accept)
    const names = query.getAll('name[]')
    return {
      status: 200,
      headers: {
        'Content-Type': contentType,
        'Process-Start-Time-Unix': String(Math.floor(metrics.startSeconds)),
      },
      body: await read({ format, names: names.length === 0 ? undefined : new Set(names) }),
    }
  }
}

/** The results of health checks; DELETE forgets them. */
function sliPage(options: MetricsPageOptions): Page {
  const { metrics } = options
  const read = readOnly(prometheusPage(options, (request) => metrics.sliPage(request)))
  return (request) => {
    if (request.method !== 'DELETE') return read(request)
    metrics.resetSlis()
    return textReply(200, 'metrics reset\n')
  }
}

/** Says that this process answers, and nothing more: /healthz on the healthz port says whether it does its work. */
function healthzPage({ metrics }: MetricsPageOptions): Page {
  return ({ query }) => {
    metrics.healthcheck.with('ping', 'healthz').set(1)
    metrics.healthchecks.with('ping', 'healthz', 'success').inc()
    return textReply(200, query.has('verbose') ? '[+]ping ok\nhealthz check passed\n' : 'ok')
  }
}

function debugPage(options: MetricsPageOptions): Page {
  return async (request) => {
    const { path } = request
    if (path === '/debug/pprof') return { ...textReply(302, ''), headers: { Location: '/debug/pprof/' } }
    if (path === '/debug/flags' || path === '/debug/flags/') {
      return readOnly(() => textReply(200, '/debug/flags/v  PUT a number to change the verbosity of the log\n'))(
        request,
      )
    }
    if (path === '/debug/flags/v') return verbosityPage(options)(request)
    if (!path.startsWith('/debug/pprof/')) return notFound
    // Loaded on use: the inspector is not small.
    const { profilesPage } = await import('./profiles.ts')
    return readOnly(profilesPage)(request)
  }
}

function verbosityPage({ setVerbosity }: MetricsPageOptions): Page {
  return async ({ method, body }) => {
    if (method !== 'PUT') return textReply(406, 'unsupported http method\n')
    const text = (await body()).trim()
    const level = Number(text)
    if (!/^\d+$/.test(text) || level > 2 ** 31 - 1) {
      return textReply(400, `Cannot set v to ${JSON.stringify(text)}: must be a number, 0 to 2147483647\n`)
    }
    setVerbosity(level)
    return textReply(200, `successfully set klog.logging.verbosity to ${level}\n`)
  }
}
