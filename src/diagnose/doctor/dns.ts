// Asks a name server for the addresses of a name.

import { Resolver } from 'node:dns/promises'
import type { Family } from '../../lib/ip.ts'

export type NameAnswer =
  | { readonly kind: 'addresses'; readonly addresses: readonly string[] }
  /** `NXDOMAIN`, `SERVFAIL` */
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'silent'; readonly error: string }

const TIMEOUT_MS = 1500

/** What Node calls the codes of DNS. */
const CODES: Readonly<Record<string, string>> = {
  ENODATA: 'no address',
  EFORMERR: 'FORMERR',
  ESERVFAIL: 'SERVFAIL',
  ENOTFOUND: 'NXDOMAIN',
  ENOTIMP: 'NOTIMP',
  EREFUSED: 'REFUSED',
  EBADRESP: 'an answer that cannot be read',
}

/** Never rejects. */
export async function lookUp(server: string, port: number, name: string, family: Family): Promise<NameAnswer> {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: 1 })
  // c-ares may wait for longer than its timeout.
  const timer = setTimeout(() => resolver.cancel(), TIMEOUT_MS)
  try {
    resolver.setServers([server.includes(':') ? `[${server}]:${port}` : `${server}:${port}`])
    const addresses = family === 4 ? await resolver.resolve4(name) : await resolver.resolve6(name)
    return { kind: 'addresses', addresses }
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    const known = CODES[code]
    if (known !== undefined) return { kind: 'code', code: known }
    const isLate = code === 'ETIMEOUT' || code === 'ECANCELLED'
    return { kind: 'silent', error: isLate ? `no answer within ${TIMEOUT_MS} ms` : code || message }
  } finally {
    clearTimeout(timer)
  }
}
