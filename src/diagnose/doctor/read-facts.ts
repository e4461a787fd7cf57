// Reads all that the doctor looks at. Opens connections to endpoints and closes them at once; changes nothing.

import { conntrackFlows } from '../../conntrack/driver.ts'
import { explain, type KernelState, prepare } from '../explain/explain.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import { isOutside, type Question, QuestionMistake } from '../explain/question.ts'
import { readKernelState, withProxyAffinity } from '../explain/read-kernel.ts'
import type { ApiObjects } from './read-api.ts'
import { canonicalIp, type Family, ipBytes, ipFamily, joinHostPort } from '../../lib/ip.ts'
import { nearest } from '../../lib/nearest.ts'
import { findWays } from '../../links/find-ways.ts'
import type { FrontendKind } from '../../model/types.ts'
import { lookUp } from './dns.ts'
import { clientPort, followPacket } from '../explain/send.ts'
import type {
  DnsFact,
  EndFact,
  ForeignFacts,
  ServiceExamination,
  Installation,
  OtherFrontend,
  ProxyFact,
  StaleFlow,
  TryFact,
} from './facts.ts'
import { otherFrontends } from './frontends.ts'
import { MOST_ENDPOINTS, packetsOf } from './packets.ts'
import { readForeign, readMachine, readPodMtu, readRpFiltered, tryConnection } from './read-machine.ts'
import { serviceFact } from './service-fact.ts'

export interface ToExamine {
  readonly service: string
  readonly port: string
  readonly from: string
  /** Only this kind of address. */
  readonly via?: FrontendKind | undefined
  readonly proxy: ProxyFact
  readonly installation: Installation
  readonly known: Known | undefined
  readonly objects: ApiObjects | undefined
  readonly apiError?: string | undefined
  /** The control socket of the proxy; absent: that of this network namespace. */
  readonly socket?: string
  /** What was read of the kernel for another question; absent: it is read for this one. */
  readonly states?: Map<Family, Promise<KernelState>>
  /** False: endpoints are not dialled, nor rules of others looked at. */
  readonly dials?: boolean
  /** Packets to endpoints that do not answer are followed through the kernel. */
  readonly sends?: boolean
}

const UDP = 17

/** Throws a QuestionMistake where FROM makes no sense. */
export async function readFacts(question: ToExamine): Promise<ServiceExamination> {
  const { service: name, port, from, via, proxy, installation, objects, apiError } = question
  const known = withPods(question)
  const service = known && serviceFact(known, objects, name)
  const explained = known === undefined || service === undefined ? undefined : await explainIt(question, known)
  const family = explained === undefined ? 4 : (ipFamily(explained.question.destination) ?? 4)
  const others = known === undefined || explained === undefined ? [] : await readOthers(question, known, explained)
  const here =
    known === undefined || question.dials === false
      ? {}
      : await readHere(family, explained, { known, others, sends: question.sends === true })
  const areAllThere = (here.tries ?? []).every(({ result }) => result === 'connected')
  return {
    asked: { service: name, port, from, via },
    proxy,
    installation,
    apiError,
    service,
    near: known === undefined ? [] : nearNames(known, name),
    explanation: explained,
    machine: readMachine(family),
    foreign: undefined,
    ways: undefined,
    wayBack: undefined,
    tries: [],
    ends: undefined,
    serviceTry: undefined,
    staleFlows: undefined,
    dns: { kind: 'not asked' },
    ...here,
    others: question.dials === false || !areAllThere ? others : await dialOthers(others, here.tries ?? [], known),
  }
}

/** The API server knows pods and other nodes; the proxy does not. */
export function withPods({ known, objects }: Pick<ToExamine, 'known' | 'objects'>): Known | undefined {
  if (known === undefined || objects === undefined || known.pods === objects.pods) return known
  const missing = objects.services.filter(
    ({ namespace, name }) => !known.services.some((each) => each.namespace === namespace && each.name === name),
  )
  return { ...known, pods: objects.pods, services: [...known.services, ...missing] }
}

/** Undefined: the service has nothing that could be dialled, or not the port. What it is then, other questions find. */
async function explainIt(question: ToExamine, known: Known): Promise<Explanation | undefined> {
  const { service, port, from, via } = question
  try {
    return await explainOne(question, known, { from, to: port === '' ? service : `${service}:${port}`, via })
  } catch (error) {
    if (!(error instanceof QuestionMistake)) throw error
    if (isAboutClient(known, question)) throw error
    return undefined
  }
}

/** Whether the same could be asked about the node itself: then it is FROM that makes no sense. */
function isAboutClient(known: Known, { service, port, from, via }: ToExamine): boolean {
  if (from === 'node') return false
  try {
    prepare(known, { from: 'node', to: port === '' ? service : `${service}:${port}`, via })
    return true
  } catch {
    return false
  }
}

async function explainOne(
  { states = new Map(), socket = '' }: ToExamine,
  known: Known,
  asked: Question,
): Promise<Explanation> {
  const prepared = prepare(known, asked)
  const state = await stateOf(known.mode.name, prepared.asked.family, states)
  return explain(prepared, await withProxyAffinity(state, prepared, socket))
}

function stateOf(mode: string, family: Family, states: Map<Family, Promise<KernelState>>): Promise<KernelState> {
  let state = states.get(family)
  if (state === undefined) states.set(family, (state = readKernelState(mode, family)))
  return state
}

async function readOthers(question: ToExamine, known: Known, explained: Explanation): Promise<OtherFrontend[]> {
  const { service, port, from, via } = question
  const states = question.states ?? new Map<Family, Promise<KernelState>>()
  const found: OtherFrontend[] = []
  for (const { kind, label, target } of otherFrontends(known, { service, port, from, via, explained })) {
    const clientFamily = ipFamily(from)
    const family = target === undefined ? undefined : ipFamily(hostOf(target))
    if (clientFamily !== undefined && family !== undefined && family !== clientFamily) continue
    const explanation =
      target === undefined ? undefined : await explainOther({ ...question, states }, known, { from, to: target })
    if (target !== undefined && explanation === undefined) continue
    found.push({ kind, label, explanation, tries: [], serviceTry: undefined })
  }
  return found
}

/** Undefined: the client has no address of this family. */
async function explainOther(question: ToExamine, known: Known, asked: Question): Promise<Explanation | undefined> {
  try {
    return await explainOne(question, known, asked)
  } catch (error) {
    if (error instanceof QuestionMistake) return undefined
    throw error
  }
}

/** Destinations that the node itself may not reach say nothing about other clients. */
async function dialOthers(
  others: readonly OtherFrontend[],
  before: readonly TryFact[],
  known: Known | undefined,
): Promise<OtherFrontend[]> {
  const dialled = new Map(before.map((each) => [each.to, Promise.resolve(each)]))
  const dial = ({ address, port }: { readonly address: string; readonly port: number }) => {
    const to = joinHostPort(address, port)
    let attempt = dialled.get(to)
    if (attempt === undefined)
      dialled.set(to, (attempt = tryConnection(address, port, known ? podAt(known, address) : '')))
    return attempt
  }
  return Promise.all(
    others.map(async (other) => {
      const { explanation } = other
      if (explanation === undefined || explanation.question.protocol !== 'TCP' || explanation.outcome !== 'to')
        return other
      const eligible = explanation.backends.filter((each) => each.eligible).slice(0, MOST_ENDPOINTS)
      const tries = await Promise.all(eligible.map(dial))
      const { destination, port } = explanation.question
      const isTried = isOwnTcp(explanation) && tries.every(({ result }) => result === 'connected')
      return { ...other, tries, serviceTry: isTried ? await tryConnection(destination, port, '') : undefined }
    }),
  )
}

function isOwnTcp({ question }: Explanation): boolean {
  return question.from === 'the node itself' && question.protocol === 'TCP'
}

async function readHere(
  family: Family,
  explanation: Explanation | undefined,
  {
    known,
    others,
    sends,
  }: { readonly known: Known; readonly others: readonly OtherFrontend[]; readonly sends: boolean },
): Promise<Partial<ServiceExamination>> {
  const machine = { ...readMachine(family), podMtu: readPodMtu(known, family) }
  if (explanation === undefined) return { machine }
  const dns = await askNameServer(known, explanation)
  if (explanation.outcome !== 'to') return { machine, dns }
  const { question, backends } = explanation
  const eligible = backends.filter((each) => each.eligible).slice(0, MOST_ENDPOINTS)
  const isOwn = question.from === 'the node itself'
  const ways = findWays(eligible.map(({ address }) => ipBytes(address)))
  const [wayBack] = isOwn || isAnyone(known, question.source) ? [] : findWays([ipBytes(question.source)])
  const foreign = await readForeignOf(known, [explanation, ...others.flatMap((other) => other.explanation ?? [])])
  // That is the answer: waiting for endpoints that cannot answer would add nothing.
  if (foreign.found.length > 0) return { machine, dns, foreign }
  const filteredBefore = readRpFiltered()
  const dialled = question.protocol === 'TCP' ? eligible : []
  const tries = await Promise.all(
    dialled.map(({ address, port }) => tryConnection(address, port, podAt(known, address))),
  )
  const areAllThere = tries.every(({ result }) => result === 'connected')
  const lost = question.protocol === 'UDP' ? eligible : eligible.filter((_, i) => tries[i]!.result === 'no answer')
  const ends = sends && isOwn ? await followEach(explanation, lost.slice(0, MOST_FOLLOWED), known) : undefined
  return {
    machine: { ...machine, rpFiltered: readRpFiltered() - filteredBefore },
    dns,
    // What passes shows that it passes.
    foreign: tries.length > 0 && areAllThere && isOwn ? { ...foreign, doubts: [] } : foreign,
    ways: ways.map((way, i) => ({ way, to: joinHostPort(eligible[i]!.address, eligible[i]!.port) })),
    wayBack: wayBack && { way: wayBack, to: question.source },
    tries,
    ends,
    serviceTry:
      isOwnTcp(explanation) && areAllThere ? await tryConnection(question.destination, question.port, '') : undefined,
    staleFlows: await readStaleFlows(family, explanation, known),
  }
}

/** Each takes seconds. */
const MOST_FOLLOWED = 3

async function followEach(
  { question }: Explanation,
  endpoints: Explanation['backends'],
  { machineAddresses }: Known,
): Promise<EndFact[]> {
  const { source, protocol } = question
  if (protocol !== 'TCP' && protocol !== 'UDP') return []
  const ends: EndFact[] = []
  for (const { address, port } of endpoints) {
    const flow = { source, sourcePort: clientPort(), destination: address, destinationPort: port }
    const around = { addresses: machineAddresses, ports: [] }
    const { answer, trace, drops, dropsError } = await followPacket(flow, {
      family: ipFamily(address)!,
      protocol,
      around,
    })
    ends.push({ to: joinHostPort(address, port), answer, droppedBy: trace.droppedBy, drops, dropsError })
  }
  return ends
}

/** Of all addresses of the Service that lead anywhere, of both families. */
async function readForeignOf(known: Known, explanations: readonly Explanation[]): Promise<ForeignFacts> {
  const all: ForeignFacts[] = []
  for (const family of [4, 6] as const) {
    const own = explanations.filter(
      ({ outcome, question }) => outcome === 'to' && ipFamily(question.destination) === family,
    )
    const packets = own.flatMap((each) => packetsOf(known, family, each))
    if (packets.length > 0) all.push(await readForeign(family, packets, known.machineAddresses))
  }
  return {
    found: all.flatMap(({ found }) => found),
    doubts: all.flatMap(({ doubts }) => doubts),
    policyEngines: [...new Set(all.flatMap(({ policyEngines }) => policyEngines))],
  }
}

/** An address that stands for all clients outside: there is no route to it that says anything. */
function isAnyone(known: Known, source: string): boolean {
  return isOutside(known, source) && /^203\.0\.113\.|^2001:db8:ffff:/.test(source)
}

function podAt({ pods }: Known, ip: string): string {
  const pod = pods.find(({ ips }) => ips.includes(ip))
  return pod === undefined ? '' : `-n ${pod.namespace} ${pod.name}`
}

/** Flows of UDP outlive endpoints. Where the proxy carries connections itself, and where it is IPVS, the tracker does not say whereto. */
async function readStaleFlows(
  family: Family,
  { question, backends }: Explanation,
  known: Known,
): Promise<readonly StaleFlow[] | undefined> {
  if (question.protocol !== 'UDP' || known.mode.name === 'userspace' || known.mode.name === 'ipvs') return undefined
  const own = new Set(backends.map(({ address, port }) => joinHostPort(address, port)))
  const find = () =>
    conntrackFlows.findUdp(
      family,
      ({ protocol, original, reply }) =>
        protocol === UDP &&
        original.dst === question.destination &&
        original.dport === question.port &&
        !own.has(joinHostPort(reply.src, reply.sport)),
    )
  try {
    if ((await find()).length === 0) return []
    // Of what is just going, the proxy removes the flows a moment later.
    await new Promise((resolve) => setTimeout(resolve, 500))
    return (await find()).map(({ original, reply }) => ({
      protocol: 'UDP',
      client: joinHostPort(original.src, original.sport),
      dialled: joinHostPort(original.dst, original.dport),
      endpoint: joinHostPort(reply.src, reply.sport),
    }))
  } catch {
    return undefined
  }
}

/** Of the cluster's name server, where there is a Service that is one. From outside, names of services are not looked up there. */
async function askNameServer(known: Known, { question }: Explanation): Promise<DnsFact> {
  const server = known.services.find(({ namespace, name }) => namespace === 'kube-system' && NAME_SERVERS.has(name))
  const address = server?.clusterIPs.map((ip) => canonicalIp(ip)).find((ip) => ip !== undefined)
  const [namespace, service] = question.to.split('/')
  if (address === undefined || service === undefined || isOutside(known, question.source)) return { kind: 'not asked' }
  const own = known.services.find((each) => each.namespace === namespace && each.name === service)
  const clusterIP = own?.clusterIPs.map((ip) => canonicalIp(ip)).find((ip) => ip !== undefined)
  if (clusterIP === undefined) return { kind: 'not asked' }
  const name = `${service}.${namespace}.svc.cluster.local`
  const answer = await lookUp(address, 53, name, ipFamily(clusterIP)!)
  if (answer.kind === 'silent') return { kind: 'silent', name, server: address, error: answer.error }
  // The cluster's domain may be another one: that it answers is what counts then.
  if (answer.kind === 'code' && answer.code === 'NXDOMAIN') return { kind: 'not asked' }
  if (answer.kind === 'code') return { kind: 'wrong', name, server: address, answer: answer.code }
  const [first = ''] = answer.addresses
  return answer.addresses.map((ip) => canonicalIp(ip)).includes(clusterIP)
    ? { kind: 'answers', name, server: address, address: first }
    : { kind: 'wrong', name, server: address, answer: first }
}

const NAME_SERVERS: ReadonlySet<string> = new Set(['kube-dns', 'coredns', 'rke2-coredns-rke2-coredns'])

function nearNames({ services }: Known, name: string): string[] {
  const near = nearest(
    name,
    services.map((each) => `${each.namespace}/${each.name}`),
  )
  const [, plain] = name.split('/')
  const elsewhere = services.filter((each) => each.name === plain).map((each) => `${each.namespace}/${each.name}`)
  return [...new Set([...elsewhere, ...(near === undefined ? [] : [near])])].filter((each) => each !== name)
}

function hostOf(target: string): string {
  return target.replace(/:\d+\/\w+$/, '').replace(/^\[|\]$/g, '')
}
