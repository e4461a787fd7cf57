// Who may look: the person to whom the URL was told, through a browser that came here on purpose.

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** Everything comes from here, nothing is loaded from elsewhere, and nothing that an object contains is run. */
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
  /** `127.0.0.1:41234`: as browsers send it in Host, each of them. */
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
    // Cookies know no ports: several sandboxes on one machine must not take each other's.
    this.#cookieName = `kube-proxy-ui-${createHash('sha256').update(options.token).digest('hex').slice(0, 8)}`
  }

  /** For the browser, which sends it back and shows it to no script. */
  get cookie(): string {
    return `${this.#cookieName}=${this.#options.token}; HttpOnly; SameSite=Strict; Path=/`
  }

  /** Whether it is meant for us: a name that was made to lead here, of a page elsewhere, is not ours. */
  refuseStranger({ method, headers }: IncomingMessage): Refused | undefined {
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

  /** Whether the token is there: in the URL, or in the cookie. */
  refuseUnknown({ headers }: IncomingMessage, query: URLSearchParams): Refused | undefined {
    const given = [query.get('token'), cookieNamed(headers.cookie, this.#cookieName)]
    if (given.some((token) => token !== null && token !== undefined && isSame(token, this.#options.token)))
      return undefined
    return { status: 401, error: 'Cannot answer without the token: open the URL as it was printed' }
  }
}

/** In a time that does not tell how much of it is right. */
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
