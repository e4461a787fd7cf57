// A question, what is known, and what is in the kernel become an explanation.

import { type Family, joinHostPort, formatIp, ipBytes } from '../../lib/ip.ts'
import { chosenFrontends } from '../../connect/plan.ts'
import type { KernelWay, Walkable, Packet } from '../../packet-walk/types.ts'
import type { Topology } from '../../model/topology.ts'
import { compareWays, endOf, outcomeOf, phrase } from './compare.ts'
import { decide, type Decision } from './decide.ts'
import type {
  ExplainedAffinity,
  ExplainedKernel,
  ExplainedSending,
  ExplainedStep,
  ExplainedWay,
  Explanation,
} from './explanation.ts'
import { decideAll, type Decided, isOfService, type Known } from './known.ts'
import { annotationsOf } from '../../model/service-model.ts'
import { findMisses } from './misses.ts'
import { type ResolvedQuestion, type Question, QuestionMistake, resolveQuestion } from './question.ts'
import { walkAll, type Ways } from './walk-all.ts'

/** What is in the kernel, or why that is not known; absent: not looked at. */
export type KernelState =
  | {
      readonly kind: 'walkable'
      readonly walkable: Walkable
      readonly when: string
      readonly nowMs: number
      /** What affinity has for this client, where a proxy remembers it; absent: the kernel does, or it was not asked. */
      readonly proxyAffinity?: ProxyAffinity | undefined
    }
  | { readonly kind: 'nothing'; readonly what: string }
  | { readonly kind: 'unknown'; readonly what: string; readonly error: string }

/** What the proxy remembers of a client: nothing, or a backend with the time that is left. */
export type ProxyAffinity = { readonly backend: string; readonly leftMs: number } | 'nothing'

/** A question with all that follows from it before any kernel is looked at. */
export interface Prepared {
  readonly known: Known
  readonly asked: ResolvedQuestion
  readonly decided: Decided
  readonly decision: Decision
}

/** Throws a QuestionMistake. */
export function prepare(known: Known, question: Question): Prepared {
  const asked = resolveQuestion(known, question)
  const decided = decidedOf(known, asked.family)
  if (decided === undefined) throw new QuestionMistake(`Node ${nodeName(known)} does not have IPv${asked.family}`)
  return { known, asked, decided, decision: decide(known, decided, asked.connection) }
}

const decidedBefore = new WeakMap<Known, Map<Family, Decided | undefined>>()

/** Of one cluster many questions may be asked. */
export function decidedOf(known: Known, family: Family): Decided | undefined {
  let families = decidedBefore.get(known)
  if (families === undefined) decidedBefore.set(known, (families = new Map()))
  if (!families.has(family)) families.set(family, decideAll(known, family))
  return families.get(family)
}

/** The ports of clients are above this one. */
const CLIENT_PORT = 40_000

export function packetOf({ asked }: Prepared): Packet {
  const { source, destination, port, protocol, inputInterface } = asked.connection
  return {
    inputInterface,
    source: ipBytes(source),
    destination: ipBytes(destination),
    destinationPort: port,
    sourcePort: CLIENT_PORT,
    protocol,
  }
}

export function explain(prepared: Prepared, state: KernelState | undefined, sent?: ExplainedSending): Explanation {
  const explanation = explainDecision(prepared, state, sent)
  return prepared.known.hasObjects ? explanation : byRulesAlone(explanation)
}

/** Without objects, only the rules have an answer. */
function byRulesAlone(explanation: Explanation): Explanation {
  const { kernel, question } = explanation
  const [first] = kernel?.ways ?? []
  const what = `${joinHostPort(question.destination, question.port)}/${question.protocol}`
  const because = 'from the rules alone, without objects to compare with'
  const ends = [
    ...new Set((kernel?.ways ?? []).map((way) => (way.outcome === 'to' ? way.destination : phrase(way.outcome)))),
  ]
  const headline =
    first === undefined
      ? `No answer for ${what}: ${kernel?.error ?? 'there are no rules'}`
      : first.outcome === 'to'
        ? `By these rules, a connection to ${what} is sent to ${ends.length > 1 ? 'one of ' : ''}${ends.join(', ')}.`
        : `By these rules, a connection to ${what} is ${phrase(first.outcome)}.`
  return {
    ...explanation,
    headline,
    agreement: 'not compared',
    outcome: first?.outcome ?? 'untouched',
    because,
    client: { kind: explanation.client.kind, because },
    misses: [],
    kernel: kernel === null ? null : { ...kernel, differences: [] },
  }
}

function explainDecision(prepared: Prepared, state: KernelState | undefined, sent?: ExplainedSending): Explanation {
  const { known, asked, decided, decision } = prepared
  const { connection, service } = asked
  const kernel = state === undefined ? undefined : walkKernel(prepared, state)
  const { dialled } = decision
  const differences = [...(kernel?.explained.differences ?? []), ...(sent?.differences ?? [])]
  const compared = kernel !== undefined && kernel.explained.error === null
  return {
    version: 1,
    headline: headlineOf(decision, prepared, differences),
    agreement: differences.length > 0 ? 'differs' : compared || sent !== undefined ? 'agrees' : 'not compared',
    question: {
      from: asked.fromLabel,
      source: connection.source,
      to: asked.toLabel,
      destination: connection.destination,
      port: connection.port,
      protocol: connection.protocol,
      asked: known.source,
      hasObjects: known.hasObjects,
      node: nodeName(known),
      mode: known.mode.name,
      assumed: asked.assumed,
    },
    outcome: decision.outcome,
    because: decision.because,
    client: decision.client,
    frontend:
      dialled === undefined
        ? null
        : {
            servicePort: dialled.view.name,
            kind: dialled.frontend.kind,
            address: dialled.frontend.address ?? null,
            port: dialled.frontend.port,
            protocol: dialled.frontend.protocol,
          },
    misses: dialled === undefined && connection.protocol !== 'ICMP' ? findMisses(known, decided, connection) : [],
    sources: decision.sources ?? null,
    policy:
      decision.policy === undefined
        ? null
        : { ...decision.policy, topology: describeTopology(decision.policy.topology) },
    backends: decision.backends.map(({ ip, port, nodeName: on, eligible, why, masquerade, share }) => ({
      address: ip,
      port,
      node: on,
      eligible,
      why,
      masquerade,
      share: share === undefined ? null : Math.round(share * 10_000) / 10_000,
    })),
    affinity: explainAffinity(decision, kernel, state),
    masquerade: explainMasquerade(decision),
    atConnect: explainChoice(prepared),
    problems: problemsOf(prepared, service),
    kernel: kernel?.explained ?? null,
    sent: sent ?? null,
  }
}

/** `--socket-balancing`: the rules are for those that are not of its cgroup, and for what it leaves to them. */
function explainChoice({ known, decided, asked, decision: { dialled, client } }: Prepared): string | null {
  const { socketBalancing } = known
  if (socketBalancing === undefined || dialled === undefined || decided.node.masqueradeAll) return null
  const choosers = { pods: client.kind === 'pod', node: client.kind === 'node' }
  const view = { ...dialled.view, frontends: [dialled.frontend] }
  if (chosenFrontends(asked.family, view, choosers).length === 0) return null
  const when = dialled.frontend.protocol === 'UDP' ? 'when it sends without connect()' : 'when it connects'
  return `a process of the cgroup ${socketBalancing} gets one of these ${when}; its packets then pass no rule of the service`
}

interface WalkedKernel {
  readonly explained: ExplainedKernel
  readonly ways: readonly KernelWay[]
  readonly nowMs: number
}

function walkKernel(prepared: Prepared, state: KernelState): WalkedKernel {
  if (state.kind === 'unknown') {
    return { explained: { what: state.what, error: state.error, ways: [], differences: [] }, ways: [], nowMs: 0 }
  }
  if (state.kind === 'nothing') {
    const { outcome } = prepared.decision
    const difference = `decided: ${phrase(outcome)}; the kernel has nothing of this mode`
    const differences = outcome === 'untouched' ? [] : [difference]
    return { explained: { what: `${state.what}: nothing`, error: null, ways: [], differences }, ways: [], nowMs: 0 }
  }
  const { walkable, when, nowMs } = state
  const { isOwnAddress } = prepared.decided
  let found: Ways
  try {
    found = walkAll(walkable, packetOf(prepared), {
      isLocalAddress: (bytes) => isOwnAddress(formatIp(bytes)),
      now: () => nowMs,
    })
  } catch (error) {
    const what = `${walkable.what}, ${when}`
    const message = error instanceof Error ? error.message : String(error)
    return { explained: { what, error: message, ways: [], differences: [] }, ways: [], nowMs }
  }
  const { connection } = prepared.asked
  const differences = compareWays(prepared.decision, found, { connection, endsAt: walkable.endsAt, isOwnAddress })
  return {
    explained: { what: `${walkable.what}, ${when}`, error: null, ways: found.ways.map(explainWay), differences },
    ways: found.ways,
    nowMs,
  }
}

function explainWay(way: KernelWay): ExplainedWay {
  return {
    outcome: outcomeOf(way),
    destination: endOf(way),
    masqueraded: way.masqueraded,
    steps: way.steps.map(({ hook, place, rule, comment, found, counted }): ExplainedStep => ({
      hook,
      place,
      rule,
      comment: comment ?? null,
      found,
      packets: counted === undefined ? null : Number(counted.packets),
      bytes: counted === undefined ? null : Number(counted.bytes),
    })),
  }
}

function explainAffinity(
  { dialled, isRelayed }: Decision,
  kernel: WalkedKernel | undefined,
  state: KernelState | undefined,
): ExplainedAffinity | null {
  const seconds = dialled?.frontend.affinitySeconds
  if (seconds === undefined) return null
  const unknown = { seconds, remembered: null, backend: null, secondsLeft: null }
  if (kernel === undefined || isRelayed === true) return unknown
  if (state?.kind === 'walkable' && state.walkable.endsAt === 'the proxy') {
    const { proxyAffinity: recalled } = state
    if (recalled === undefined) return unknown
    if (recalled === 'nothing') return { ...unknown, remembered: false }
    const { backend, leftMs } = recalled
    return { seconds, remembered: true, backend, secondsLeft: Math.round(leftMs / 1000) }
  }
  const way = kernel.ways.find(({ affinityEntry }) => affinityEntry !== undefined)
  const affinityEntry = way?.affinityEntry
  if (way === undefined || affinityEntry === undefined)
    return { seconds, remembered: false, backend: null, secondsLeft: null }
  const leftMs = affinityEntry.expiresMs - kernel.nowMs
  return {
    seconds,
    remembered: true,
    backend: affinityEntry.endpoint ?? endOf(way),
    secondsLeft: Number.isFinite(leftMs) ? Math.round(leftMs / 1000) : null,
  }
}

function explainMasquerade({ outcome, backends }: Decision): Explanation['masquerade'] {
  const eligible = backends.filter((each) => each.eligible)
  const [first] = eligible
  if (outcome !== 'to' || first === undefined) return null
  const same = eligible.every(({ masquerade }) => masquerade === first.masquerade)
  const special = eligible.find(({ masqueradeWhy }) => masqueradeWhy !== first.masqueradeWhy)
  const why =
    special === undefined
      ? first.masqueradeWhy
      : `${first.masqueradeWhy}; at ${joinHostPort(special.ip, special.port)}: ${special.masqueradeWhy}`
  return { masquerade: same ? first.masquerade : 'depends on the backend', why }
}

function headlineOf(decision: Decision, { asked, known }: Prepared, differences: readonly string[]): string {
  const { destination, port, protocol } = asked.connection
  const isPing = protocol === 'ICMP'
  const what = isPing ? destination : `${joinHostPort(destination, port)}/${protocol}`
  const [difference] = differences
  if (difference !== undefined) {
    return /, by table \S+ (?!kube-proxy)/.test(difference)
      ? `Another program's rule ends it: ${difference}`
      : `The kernel does not do what the proxy decided: ${difference}`
  }
  const eligible = decision.backends.filter((each) => each.eligible)
  switch (decision.outcome) {
    case 'to': {
      if (isPing) return `A ping to ${what} is answered by this node: ${decision.because}.`
      const [only] = eligible
      const ends =
        eligible.length === 1 && only !== undefined
          ? `is sent to ${joinHostPort(only.ip, only.port)}`
          : `is sent to one of ${eligible.length} endpoints`
      return `A connection to ${what} ${ends} of ${decision.dialled!.view.name}.`
    }
    case 'reject':
      return `${isPing ? 'A ping' : 'A connection'} to ${what} is refused: ${decision.because}.`
    case 'drop':
      return `${isPing ? 'A ping' : 'A connection'} to ${what} is dropped silently: ${decision.because}.`
    case 'untouched':
      return `A packet to ${what} passes the proxy of ${nodeName(known)} unchanged: ${decision.because}.`
  }
}

/** What the model had to leave out, and what keeps endpoints from counting. */
function problemsOf({ known, decided, decision }: Prepared, named: ResolvedQuestion['service']): string[] {
  const { view } = decision.dialled ?? {}
  const key = view === undefined ? named && `${named.namespace}/${named.name}` : `${view.namespace}/${view.service}`
  if (key === undefined) return []
  const lines: string[] = []
  const own = known.slices.filter(({ namespace, serviceName }) => `${namespace}/${serviceName}` === key)
  const slices = new Set(
    own.flatMap(({ namespace, name }) => {
      const slice = `EndpointSlice ${namespace}/${name}`
      return [slice, annotationsOf(slice)]
    }),
  )
  for (const [object, messages] of decided.problems) {
    if (isOfService(object, key) || slices.has(object))
      lines.push(...messages.map((message) => `${object}: ${message}`))
  }
  if (view !== undefined && decision.backends.length === 0) lines.push(...whyNoEndpoints(decided, key, view))
  return lines
}

function whyNoEndpoints(decided: Decided, key: string, view: { portName: string; protocol: string }): string[] {
  const count = decided.model.countEndpointsOf(key)
  if (count === 0) return [`no EndpointSlice of ${key} has an endpoint: does its selector match a pod?`]
  const offered = decided.model
    .offeredPorts(key)
    .map((port) => `${port.name || '(unnamed)'} ${port.port}/${port.protocol}`)
  const wanted = `${view.portName || '(unnamed)'}/${view.protocol}`
  return [
    `the EndpointSlices of ${key} have ${count} endpoints, but none for port ${wanted}: they have ${offered.join(', ') || 'no port'}; does targetPort name a port of the pods?`,
  ]
}

export function describeTopology(topology: Topology): string {
  switch (topology.kind) {
    case 'everywhere':
      return `endpoints of all zones and nodes: ${topology.because}`
    case 'node hints':
      return 'the hints of endpoints name this node'
    case 'zone hints':
      return `the hints of endpoints name zone ${topology.zone}, which is this node's`
  }
}

function nodeName({ nodes }: Known): string {
  return (nodes[4] ?? nodes[6])?.nodeName ?? ''
}
