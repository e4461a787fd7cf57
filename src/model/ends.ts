// What becomes of open TCP connections to an endpoint that is removed.
//
//     service.kube-proxy-ts.io/removed-endpoints: "reset"
//     service.kube-proxy-ts.io/removed-endpoints: "reset after 30s"
//
// By default nothing, as with kube-proxy: a client that waits for an answer of a dead pod waits as long as its own timeouts. With
// `reset` both sides get a reset when the endpoint is gone; with a time also when it has been terminating for that long. Never while
// it still serves.

import type { Refuse } from './annotations.ts'
import { joinHostPort } from '../lib/ip.ts'
import type { Endpoint } from './endpoints.ts'

export const ENDS_ANNOTATION = 'service.kube-proxy-ts.io/removed-endpoints'

export interface Ends {
  /** How long an endpoint may be terminating; undefined: until it is gone. */
  readonly afterSeconds: number | undefined
}

const LONGEST_SECONDS = 86_400
const ALLOWED = `must be "keep", "reset" or "reset after Ns", with 1 to ${LONGEST_SECONDS} seconds`

export function parseEnds(text: string, refuse: Refuse): Ends | undefined {
  if (text === 'keep') return undefined
  if (text === 'reset') return { afterSeconds: undefined }
  const afterSeconds = Number(/^reset after (\d{1,5})s$/.exec(text)?.[1] ?? 0)
  if (afterSeconds >= 1 && afterSeconds <= LONGEST_SECONDS) return { afterSeconds }
  refuse(text, ALLOWED)
  return undefined
}

/** The endpoints of a service port, as `ip:port`, for one whose connections are to end with them. */
export interface EndpointEnds extends Ends {
  /** All that there are, in any state, but for those below. */
  readonly present: readonly string[]
  /** Those that terminate and do not serve, where there is a time for that. */
  readonly ending: readonly string[]
}

/** The same object as before when nothing has changed. */
export function planEnds(
  endpoints: readonly Endpoint[],
  { afterSeconds }: Ends,
  previous: EndpointEnds | undefined,
): EndpointEnds {
  const isEnding = ({ terminating, serving }: Endpoint) => afterSeconds !== undefined && terminating && !serving
  const ending = endpoints.filter(isEnding).map(nameOf)
  const present = endpoints.filter((endpoint) => !isEnding(endpoint)).map(nameOf)
  const isSame =
    previous !== undefined &&
    previous.afterSeconds === afterSeconds &&
    sameNames(previous.present, present) &&
    sameNames(previous.ending, ending)
  return isSame ? previous : { afterSeconds, present, ending }
}

function nameOf({ ip, port }: Endpoint): string {
  return joinHostPort(ip, port)
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((name, i) => name === b[i])
}

/** For the owner of a Service that asks for it. */
export const ENDS_HAVE_NO_EFFECT = `annotation ${ENDS_ANNOTATION} has no effect: this node runs in mode userspace, which relays connections itself`
