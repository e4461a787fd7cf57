// The text of TO: a service, an address or a URL.

import type { Protocol } from '../../kube/types.ts'
import { canonicalIp } from '../../lib/ip.ts'

export interface Target {
  readonly service?: { readonly namespace: string; readonly name: string } | undefined
  readonly address?: string | undefined
  /** A number, or a port's name. */
  readonly port?: number | string | undefined
  readonly protocol?: Protocol | 'ICMP' | undefined
}

const SCHEME_PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443, grpc: 80 }

/** The error message when it is none of them. */
export function parseTarget(text: string): Target | string {
  const [, scheme, rest] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(text) ?? []
  if (scheme !== undefined && rest !== undefined) return parseUrl(scheme.toLowerCase(), rest)
  const [, withoutProtocol = text, protocolText] = /^(.*[^/])\/(tcp|udp|sctp|icmp)$/i.exec(text) ?? []
  const protocol = protocolText?.toUpperCase() as Target['protocol']
  return parseHostPort(withoutProtocol, protocol)
}

function parseUrl(scheme: string, rest: string): Target | string {
  const [hostPort = ''] = rest.split(/[/?#]/)
  const protocol = scheme === 'tcp' || scheme === 'udp' || scheme === 'sctp' ? scheme : 'tcp'
  const parsed = parseHostPort(hostPort.slice(hostPort.lastIndexOf('@') + 1), protocol.toUpperCase() as Protocol)
  if (typeof parsed === 'string') return parsed
  return { ...parsed, port: parsed.port ?? SCHEME_PORTS[scheme] }
}

function parseHostPort(text: string, protocol: Target['protocol']): Target | string {
  const bare = canonicalIp(text.replace(/^\[(.*)\]$/, '$1'))
  if (bare !== undefined) return { address: bare, protocol }
  const [, bracketed, plain, portText] = /^(?:\[([^\]]*)\]|([^:]*))(?::([^:]*))?$/.exec(text) ?? []
  const host = bracketed ?? plain ?? ''
  const port = parsePort(portText)
  if (host === '' || port === 'bad') return whatIsAllowed(text)
  const address = canonicalIp(host)
  if (address !== undefined) return { address, port, protocol }
  const service = parseServiceName(host)
  return service === undefined ? whatIsAllowed(text) : { service, port, protocol }
}

/** `web`, `shop/web`, `web.shop`, `web.shop.svc.cluster.local`. */
function parseServiceName(host: string): Target['service'] {
  const isName = (word: string | undefined) => word !== undefined && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/i.test(word)
  if (host.includes('/')) {
    const [namespace, name, ...more] = host.split('/')
    return isName(namespace) && isName(name) && more.length === 0 ? { namespace: namespace!, name: name! } : undefined
  }
  const [name, namespace = 'default', svc] = host.split('.')
  if (!isName(name) || !isName(namespace) || (svc !== undefined && svc !== 'svc')) return undefined
  return { namespace, name: name! }
}

function parsePort(text: string | undefined): number | string | undefined {
  if (text === undefined || text === '') return undefined
  if (!/^\d+$/.test(text)) return /^[a-z0-9-]+$/i.test(text) ? text : 'bad'
  const port = Number(text)
  return port >= 1 && port <= 65535 ? port : 'bad'
}

function whatIsAllowed(text: string): string {
  return `Cannot read ${JSON.stringify(text)} as a destination: must be NAMESPACE/SERVICE[:PORT], ADDRESS:PORT[/PROTOCOL], a URL, or SERVICE/icmp or ADDRESS/icmp for a ping`
}
