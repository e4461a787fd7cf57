// Questions about what the proxy decided, for one address of the service.

import type { Explanation } from '../explain/explanation.ts'
import { ipFamily } from '../../lib/ip.ts'
import type { ServiceExamination } from './facts.ts'
import { kubectl } from './ask-service.ts'
import { fine, finding, unknown, type DoctorQuestion, type Verdict } from './verdict.ts'

type Decision = Pick<ServiceExamination, 'asked' | 'explanation' | 'nothingToDial' | 'foreign'>

export const DECISION_QUESTIONS: readonly DoctorQuestion<Decision>[] = [
  { text: 'does the Service get the address', ask: askOwner },
  { text: 'is the source allowed', ask: askSource },
  { text: 'does the traffic policy allow an endpoint', ask: askPolicy },
  { text: 'is the connection sent to an endpoint', ask: askSent },
  { text: 'does the kernel have the rules that the proxy decided on', ask: askKernel },
]

/** `kube-proxy explain` for the same connection. */
export function explainCommand({ asked, explanation }: Pick<Decision, 'asked' | 'explanation'>, more = ''): string {
  const to = `${asked.service}${asked.port === '' ? '' : `:${asked.port}`}`
  const via = asked.via === undefined ? '' : ` --via ${asked.via}`
  // The address of a pod: its name would need --kubeconfig.
  const isPod = !['node', 'outside'].includes(asked.from) && ipFamily(asked.from) === undefined
  return `kube-proxy explain ${isPod ? (explanation?.question.source ?? asked.from) : asked.from} ${to}${via}${more}`
}

function askOwner({ explanation }: Decision): Verdict {
  const lost = (explanation?.problems ?? []).find((text) => text.includes('does not get it'))
  if (lost !== undefined) return finding('address-taken', lost, 'kubectl get services --all-namespaces -o wide')
  return fine(explanation?.frontend?.address ?? '')
}

function askSource(facts: Decision): Verdict {
  const sources = facts.explanation?.sources
  if (sources === undefined || sources === null) return fine('any source')
  if (sources.allowed) return fine(sources.why)
  return finding(
    'source-not-allowed',
    sources.why,
    kubectl(facts, "get service SERVICE -o jsonpath='{.spec.loadBalancerSourceRanges}'"),
  )
}

function askPolicy(facts: Decision): Verdict {
  const { explanation } = facts
  if (explanation === undefined || explanation.policy === null) return undefined
  const { policy, outcome, backends } = explanation
  if (outcome === 'to' || outcome === 'untouched') return fine(policy.why)
  if (policy.list !== 'Local') return fine(policy.why)
  const where = [...new Set(backends.map(({ node }) => node))].join(', ')
  return finding(
    policy.field === 'internalTrafficPolicy' ? 'internal-policy-local' : 'external-policy-local',
    `spec.${policy.field} is Local, and no usable endpoint is on this node${where === '' ? '' : `; they are on ${where}`}`,
    kubectl(facts, 'get pods -o wide'),
  )
}

function askSent(facts: Decision): Verdict {
  const { explanation } = facts
  if (explanation === undefined) {
    if (facts.nothingToDial === undefined) return unknown('the proxy decided nothing')
    return finding('no-address', withoutStop(facts.nothingToDial), kubectl(facts, 'get service SERVICE -o wide'))
  }
  if (explanation.outcome === 'to') return fine(explanation.because)
  const [miss] = explanation.misses
  const near = miss === undefined ? '' : ` Near it: ${miss.what}: ${miss.why}`
  return finding('not-sent', withoutStop(`${explanation.headline}${near}`), explainCommand(facts))
}

function askKernel(facts: Decision): Verdict {
  const kernel = facts.explanation?.kernel
  if (kernel === undefined || kernel === null) return unknown('no kernel was read')
  if (kernel.error !== null) return unknown(kernel.error)
  const [difference] = kernel.differences
  if (difference === undefined) return fine(kernel.what)
  // iptables has them in the same tables; a later question names them.
  if (facts.explanation?.question.mode === 'iptables' && (facts.foreign?.found.length ?? 0) > 0)
    return fine(`${kernel.what}, with rules of other programs between them`)
  return finding('kernel-differs', difference, explainCommand(facts))
}

/** A finding is put into a sentence that has its own. */
function withoutStop(text: string): string {
  return text.replace(/\.$/, '')
}

/** The service itself refuses this client: no fault, unless this address was asked about. */
export function isByDesign(code: string, { sources }: Explanation): boolean {
  return code === 'source-not-allowed' && sources?.allowed === false
}
