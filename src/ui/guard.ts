// Access to the page: for a browser with the token, which came here on purpose.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** The browser loads nothing from elsewhere, and runs nothing from the content of objects. */
export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

export function newToken(): string {
  return randomBytes(24).toString('base64url')
}

export interface GuardOptions {
  readonly token: string
  /** The accepted Host headers: `127.0.0.1:41234`. */
  readonly hosts: () => ReadonlySet<string>
}

export interface Refused {
  readonly status: 401 | 403
  readonly error: string
}

export class Guard {
  readonly #options: GuardOptions
  readonly #cookieName: string

  constructor(options: GuardOptions) {
    this.#options = options
    // Cookies ignore ports: several sandboxes on one machine need different names.
    this.#cookieName = `kube-proxy-ui-${createHash('sha256').update(options.token).digest('hex').slice(0, 8)}`
  }

  /** Hidden from scripts. */
  get cookie(): string {
    return `${this.#cookieName}=${this.#options.token}; HttpOnly; SameSite=Strict; Path=/`
  }

  /** Refuses foreign hosts and origins: another site's DNS name may point here. */
  refuseForeign({ method, headers }: IncomingMessage): Refused | undefined {
    const hosts = this.#options.hosts()
    if (!hosts.has(headers.host ?? '')) {
      return {
        status: 403,
        error: `Cannot answer for host ${JSON.stringify(headers.host ?? '')}: open the URL as it was printed`,
      }
    }
    const isOwn = headers.origin === undefined || hosts.has(headers.origin.replace(/^http:\/\//, ''))
    const site = headers['sec-fetch-site']
    if (method !== 'GET' && method !== 'HEAD' && (!isOwn || headers.origin === undefined)) {
      return { status: 403, error: `Cannot take that from ${headers.origin ?? 'an unknown page'}` }
    }
    if (!isOwn || (site === 'cross-site' && headers['sec-fetch-mode'] !== 'navigate')) {
      return { status: 403, error: `Cannot answer to ${headers.origin ?? 'another site'}` }
    }
    return undefined
  }

  /** Refuses a request without the token in its URL or cookie. */
  refuseUnknown({ headers }: IncomingMessage, query: URLSearchParams): Refused | undefined {
    const given = [query.get('token'), cookieNamed(headers.cookie, this.#cookieName)]
    if (given.some((token) => token !== null && token !== undefined && isSame(token, this.#options.token)))
      return undefined
    return { status: 401, error: 'Cannot answer without the token: open the URL as it was printed' }
  }
}

/** In constant time. */
function isSame(given: string, token: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return timingSafeEqual(digest(given), digest(token))
}

function cookieNamed(header: string | undefined, name: string): string | undefined {
  for (const pair of (header ?? '').split(';')) {
    const [key, value] = pair.trim().split('=')
    if (key === name) return value
  }
  return undefined
}
