// HTTP proxies between us and the API server: from the kubeconfig's proxy-url, or from the environment as Go reads it.

import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { request as requestPlain, secure } from '../../lib/http.ts'
import { cidrContains, parseCidr, parseIp } from '../../lib/ip.ts'
import { AccessError } from './cluster-access.ts'
import { rootsOfMachine } from './machine-roots.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The proxy that the environment wants for this URL: HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY excludes its host. */
export function proxyFromEnvironment(target: URL, env: Env = process.env): URL | undefined {
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const value = env[name] || env[name.toLowerCase()]
  if (!value || isExcluded(target, env['NO_PROXY'] || env['no_proxy'] || '')) return undefined
  return parseProxy(name, value.includes('://') ? value : `http://${value}`)
}

/** Throws when it is not an http:// or https:// URL. What is said about it leaves its password out. */
export function parseProxy(what: string, text: string): URL {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new AccessError(`Cannot use the proxy of ${what}: must be an http:// or https:// URL`)
  }
  if (url.protocol === 'http:' || url.protocol === 'https:') return url
  throw new AccessError(
    `Cannot use the proxy of ${what}: ${url.protocol}// is not supported, must be http:// or https://`,
  )
}

/** Go's rules for NO_PROXY: `*`, host or .suffix, IP address, CIDR, each with an optional port. Never localhost. */
function isExcluded(target: URL, noProxy: string): boolean {
  const host = target.hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  const address = parseIp(host)
  if (host === 'localhost' || host === '::1' || host.startsWith('127.')) return true
  for (const entry of noProxy.split(',').map((text) => text.trim().toLowerCase())) {
    if (entry === '') continue
    if (entry === '*') return true
    const cidr = parseCidr(entry)
    if (cidr !== undefined) {
      if (address !== undefined && cidrContains(cidr, address)) return true
      continue
    }
    const [, name = entry, entryPort] =
      /^\[?(.*?)\]?(?::(\d+))?$/.exec(parseIp(entry)?.length === 16 ? `[${entry}]` : entry) ?? []
    if (entryPort !== undefined && entryPort !== port) continue
    const suffix = name.replace(/^\*?\./, '')
    if (host === suffix && !name.startsWith('.')) return true
    if (address === undefined && host.endsWith(`.${suffix}`)) return true
  }
  return false
}

/** Asks the proxy for a tunnel; the socket that comes back speaks to the target itself. */
export function openTunnel(proxy: URL, target: URL, trusted: Buffer | undefined): Promise<Socket> {
  const host = `${target.hostname}:${target.port || (target.protocol === 'https:' ? '443' : '80')}`
  const headers: Record<string, string> = { host }
  if (proxy.username !== '') {
    const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
    headers['proxy-authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
  }
  return new Promise((resolve, reject) => {
    const isSecure = proxy.protocol === 'https:'
    const connect = (isSecure ? secure.http.request : requestPlain)({
      // The cluster's authority may have signed the proxy, as client-go expects; or one that the machine trusts.
      ...(isSecure ? { ca: [...(trusted === undefined ? [] : [trusted]), ...rootsOfMachine()] } : {}),
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (isSecure ? 443 : 80),
      method: 'CONNECT',
      path: host,
      headers,
      agent: false,
      timeout: 30_000,
    })
    connect.once('connect', (response, socket) => {
      if (response.statusCode === 200) return resolve(socket)
      socket.destroy()
      reject(new Error(`Cannot connect to ${host} through proxy ${proxy.host}: status ${response.statusCode}`))
    })
    connect.once('timeout', () => connect.destroy(new Error(`proxy ${proxy.host} does not answer`)))
    connect.once('error', (cause) =>
      reject(new Error(`Cannot connect to ${host} through proxy ${proxy.host}: ${cause.message}`, { cause })),
    )
    connect.end()
  })
}
