// What the answers of the API server mean: pure.

import type { ApiFacts, ApiRequestFact } from './facts.ts'
import { type Finding, finding } from './finding-kinds.ts'

/** The Date header has whole seconds, and requests take their time. */
const CLOCKS_AGREE_MS = 10_000

/** Without these the proxy does its work all the same. */
const OPTIONAL = 'servicecidrs'

export function judgeApi(api: ApiFacts): Finding[] {
  if (api.kind === 'files') return [finding('api-files', `Services come from the files in ${api.folder}`)]
  if (api.kind === 'not named')
    return [finding('api-not-named', 'No API server was named: only this machine was checked')]
  if (api.kind === 'no access') return [finding('api-no-access', api.reason)]
  const odd = api.warnings.map((warning) => finding('api-odd', warning))
  const silent = api.requests.find(({ status }) => status === 0)
  if (silent !== undefined) return [finding('api-unreachable', silent.reason), ...odd]
  const refused = api.requests.filter(({ status }) => status < 200 || status > 299)
  const findings = refused.map(judgeRefusal).filter(isFirstOfItsKind)
  if (findings.some(({ level }) => level === 'problem')) return [...findings, ...odd]
  const version = api.version === undefined ? '' : ` (${api.version})`
  const message = `${api.server}${version} allows us to list and watch ${listOf(api.requests, refused)}`
  return [finding('api-ok', message), ...findings, ...odd]
}

export function judgeClock(api: ApiFacts): Finding[] {
  if (api.kind !== 'asked') return []
  const { clockAheadMs } = api
  if (clockAheadMs === undefined) return [finding('clock-unknown', 'The API server did not send its time')]
  const seconds = Math.round(Math.abs(clockAheadMs) / 1000)
  if (Math.abs(clockAheadMs) <= CLOCKS_AGREE_MS) {
    return [finding('clock-ok', `The clock agrees with the API server's to within ${Math.max(1, seconds)} s`)]
  }
  const direction = clockAheadMs > 0 ? 'behind' : 'ahead of'
  return [finding('clock-off', `The clock of this machine is ${seconds} s ${direction} the API server's`)]
}

function judgeRefusal({ verb, resource, status, reason }: ApiRequestFact): Finding {
  if (resource === OPTIONAL && (status === 403 || status === 404)) {
    return finding('api-no-service-cidrs', `The API server does not give us ServiceCIDRs (${status})`)
  }
  if (resource === 'endpointslices' && status === 404) {
    return finding('api-no-slices', 'The API server has no EndpointSlices; Endpoints are used')
  }
  if (status === 401) return finding('api-unauthorized', `The API server does not accept the credentials: ${reason}`)
  if (status === 403)
    return finding('api-forbidden', `The API server does not allow us to ${verb} ${resource}: ${reason}`)
  return finding('api-failed', `Cannot ${verb} ${resource}: ${reason}`)
}

/** List and watch are refused alike where the answer does not depend on them. */
function isFirstOfItsKind({ message }: Finding, at: number, all: readonly Finding[]): boolean {
  return all.findIndex((each) => each.message === message) === at
}

function listOf(requests: readonly ApiRequestFact[], refused: readonly ApiRequestFact[]): string {
  const failed = new Set(refused.map(({ resource }) => resource))
  return [...new Set(requests.map(({ resource }) => resource))].filter((resource) => !failed.has(resource)).join(', ')
}
