// HTTP and SOCKS5 proxies on the way to the API server: from the kubeconfig's proxy-url, or from the environment as Go reads it.

import { Buffer } from 'node:buffer'
import type { Socket } from 'node:net'
import { messageOf } from '../../lib/errors.ts'
import { request as requestPlain, secure } from '../../lib/http.ts'
import { cidrContains, parseCidr, parseIp } from '../../lib/ip.ts'
import { AccessError } from './cluster-access.ts'
import { rootsOfMachine } from './machine-roots.ts'
import { connectThroughSocks } from './socks.ts'

/** How long a proxy may take to connect. */
const TIMEOUT_MS = 30_000

type Env = Readonly<Record<string, string | undefined>>

/** The proxy for this URL: HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY excludes its host. */
export function proxyFromEnvironment(target: URL, env: Env = process.env): URL | undefined {
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const value = env[name] || env[name.toLowerCase()]
  if (!value || isExcluded(target, env['NO_PROXY'] || env['no_proxy'] || '')) return undefined
  return parseProxy(name, value.includes('://') ? value : `http://${value}`)
}

const SCHEMES: readonly string[] = ['http:', 'https:', 'socks5:', 'socks5h:']
const ALLOWED = 'must be http://, https:// or socks5://'

/** Throws when the URL cannot be used. The error does not contain its password. */
export function parseProxy(what: string, text: string): URL {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    throw new AccessError(`Cannot use the proxy of ${what}: ${ALLOWED}, and a host`)
  }
  if (!SCHEMES.includes(url.protocol)) {
    throw new AccessError(`Cannot use the proxy of ${what}: ${url.protocol}// is not supported, ${ALLOWED}`)
  }
  if (url.hostname === '') throw new AccessError(`Cannot use the proxy of ${what}: it names no host`)
  return url
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

/** Opens a tunnel through the proxy. The socket is connected to the target. */
export async function openTunnel(proxy: URL, target: URL, trusted: Buffer | undefined): Promise<Socket> {
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  if (!proxy.protocol.startsWith('socks5')) return openHttpTunnel(proxy, `${target.hostname}:${port}`, trusted)
  const host = target.hostname.replace(/^\[|\]$/g, '')
  try {
    return await connectThroughSocks(proxy, { host, port: Number(port) }, TIMEOUT_MS)
  } catch (cause) {
    const message = `Cannot connect to ${target.hostname}:${port} through proxy ${proxy.host}: ${messageOf(cause)}`
    throw new Error(message, { cause })
  }
}

/** `host`: with its port. */
function openHttpTunnel(proxy: URL, host: string, trusted: Buffer | undefined): Promise<Socket> {
  const headers: Record<string, string> = { host }
  if (proxy.username !== '') {
    const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
    headers['proxy-authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
  }
  return new Promise((resolve, reject) => {
    const isSecure = proxy.protocol === 'https:'
    const connect = (isSecure ? secure.http.request : requestPlain)({
      // As in client-go, the cluster's authority may have signed the proxy's certificate; or one that the machine trusts.
      ...(isSecure ? { ca: [...(trusted === undefined ? [] : [trusted]), ...rootsOfMachine()] } : {}),
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || (isSecure ? 443 : 80),
      method: 'CONNECT',
      path: host,
      headers,
      agent: false,
      timeout: TIMEOUT_MS,
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
