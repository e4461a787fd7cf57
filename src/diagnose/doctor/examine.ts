// The questions, in order. The first that fails is the diagnosis, with the next command to type.

import { ADDRESS_QUESTIONS, askDns, NETWORK_QUESTIONS } from './ask-network.ts'
import { DECISION_QUESTIONS, isByDesign } from './ask-decision.ts'
import { askApi, askForeign, askHears, askProxy, MACHINE_QUESTIONS, NODE_QUESTIONS } from './ask-machine.ts'
import { kubectl, SERVICE_QUESTIONS } from './ask-service.ts'
import type { ServiceExamination, NodeExamination, OtherFrontend } from './facts.ts'
import {
  type Answer,
  type DoctorAnswers,
  askAll,
  fine,
  type DoctorFinding,
  finding,
  type DoctorQuestion,
  type Verdict,
} from './verdict.ts'

export interface Diagnosis extends DoctorAnswers {
  readonly service: string
}

/** Of a node: what concerns all of its Services, and then those that have a problem of their own. */
export interface NodeDiagnosis extends DoctorAnswers {
  readonly node: string
  readonly services: readonly { readonly service: string; readonly finding: DoctorFinding }[]
  /** How many Services there are, and how many of them were looked at. */
  readonly count: number
  readonly looked: number
}

export function examine(facts: ServiceExamination): Diagnosis {
  const others = facts.others.map((other): DoctorQuestion<ServiceExamination> => {
    return { text: `does it answer at ${other.label}`, ask: () => askOther(facts, other) }
  })
  const questions: DoctorQuestion<ServiceExamination>[] = [
    { text: 'does a proxy run on this node and answer', ask: askProxy },
    { text: 'does the API server tell about pods', ask: askApi },
    ...SERVICE_QUESTIONS,
    ...DECISION_QUESTIONS,
    ...MACHINE_QUESTIONS,
    { text: 'do rules of other programs let packets pass', ask: askForeign },
    ...NETWORK_QUESTIONS,
    ...others,
    { text: 'does its name resolve', ask: askDns },
    { text: 'does the proxy hear of changes', ask: askHears },
  ]
  const { answers, finding: found } = askAll(questions, facts)
  const [unheard] = facts.proxy.kind === 'answers' ? facts.proxy.unheard : []
  const isOld = found !== null && unheard !== undefined && found.code !== 'proxy-uninformed'
  return {
    service: facts.asked.service,
    answers,
    finding: isOld ? { ...found, what: `${found.what}; and ${unheard}` } : found,
  }
}

/** The questions that are of no one Service. */
export function examineMachine(facts: NodeExamination): DoctorAnswers {
  return askAll(NODE_QUESTIONS, facts)
}

/** Other findings are no fault: no proxy serves such a Service. */
export function isOfProxy({ code }: DoctorFinding): boolean {
  return !['external-name', 'headless', 'another-proxy'].includes(code)
}

/** Whether a question has no answer. */
export function couldNotLook({ answers }: { readonly answers: readonly Answer[] }): boolean {
  return answers.some(({ result }) => result === 'not known')
}

/** Another address of the service: decided, in the kernel, and answering this node where that can be tried. */
function askOther(facts: ServiceExamination, other: OtherFrontend): Verdict {
  const { label, kind, explanation, serviceTry } = other
  const wasAsked = facts.asked.via === kind
  if (explanation === undefined) {
    const why = 'it is open on no address of this node: nodePortAddresses has none of them'
    if (!wasAsked && facts.explanation !== undefined) return fine(why)
    return finding('node-port-closed', `${label}: ${why}`, kubectl(facts, 'get service SERVICE -o wide'))
  }
  const of = {
    ...other,
    explanation,
    asked: { ...facts.asked, via: kind },
    foreign: facts.foreign,
    machine: facts.machine,
  }
  // Nothing was dialled where packets do not pass, or other endpoints do not answer: that is told before.
  const dialled = explanation.outcome === 'to' ? ADDRESS_QUESTIONS : []
  const { answers, finding: found } = askAll([...DECISION_QUESTIONS, ...dialled], of)
  if (found !== null) {
    if (!wasAsked && isByDesign(found.code, explanation)) return fine(`not for this client: ${found.what}`)
    return { ...found, what: `at ${label}: ${found.what}` }
  }
  const doubt = answers.find(({ result }) => result === 'not known')
  if (doubt !== undefined) return { unknown: doubt.detail, next: doubt.next }
  return fine(serviceTry === undefined ? 'decided, and in the kernel' : '')
}
