// HTTP proxies between us and the API server: from the kubeconfig's proxy-url, or from the environment as Go reads it.

import { Buffer } from 'node:buffer'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import { cidrContains, parseCidr, parseIp } from '../../lib/ip.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The proxy that the environment wants for this URL: HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY excludes its host. */
export function proxyFromEnvironment(target: URL, env: Env = process.env): URL | undefined {
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'
  const value = env[name] || env[name.toLowerCase()]
  if (!value || isExcluded(target, env['NO_PROXY'] || env['no_proxy'] || '')) return undefined
  const url = new URL(value.includes('://') ? value : `http://${value}`)
  return url.protocol === 'http:' ? url : undefined
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
export function openTunnel(proxy: URL, target: URL): Promise<Socket> {
  const host = `${target.hostname}:${target.port || (target.protocol === 'https:' ? '443' : '80')}`
  const headers: Record<string, string> = { host }
  if (proxy.username !== '') {
    const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`
    headers['proxy-authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`
  }
  return new Promise((resolve, reject) => {
    const connect = request({
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port || 80,
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
