// Reads all that the doctor looks at. Opens connections to endpoints and closes them at once; changes nothing.

import { conntrackFlows } from '../../conntrack/driver.ts'
import { explain, type KernelState, prepare } from '../explain/explain.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import { isOutside, type Question, QuestionMistake } from '../explain/question.ts'
import { readKernelState, withProxyAffinity } from '../explain/read-kernel.ts'
import type { ApiObjects } from './read-api.ts'
import { type Bytes, canonicalIp, type Family, formatIp, ipBytes, ipFamily, joinHostPort } from '../../lib/ip.ts'
import { nearest } from '../../lib/nearest.ts'
import { findSilentNeighbours } from '../../links/find-silent.ts'
import { findWays, type Way } from '../../links/find-ways.ts'
import type { FrontendKind } from '../../model/types.ts'
import { answerWay, clientWays } from './client-ways.ts'
import { lookUp } from './dns.ts'
import { departFrom, networkWith } from '../explain/networks.ts'
import { clientPort, type Departure, followPacket } from '../explain/send.ts'
import type {
  DnsFact,
  EndFact,
  EndpointFacts,
  ForeignFacts,
  ServiceExamination,
  Installation,
  MachineFacts,
  OtherFrontend,
  ProxyFact,
  StaleFlow,
  TryFact,
  WayFact,
} from './facts.ts'
import { otherFrontends } from './frontends.ts'
import { readInside } from './inside.ts'
import { MOST_ENDPOINTS, packetsOf, packetsOfTries } from './packets.ts'
import {
  readForeign,
  readForwardingOff,
  readMachine,
  readPodMtu,
  readRpFiltered,
  tryConnection,
} from './read-machine.ts'
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
  const explanation = typeof explained === 'string' ? undefined : explained
  const others = known === undefined || explanation === undefined ? [] : await readOthers(question, known, explanation)
  return {
    asked: { service: name, port, from, via },
    proxy,
    installation,
    apiError,
    service,
    near: known === undefined ? [] : nearNames(known, name),
    explanation,
    nothingToDial: typeof explained === 'string' ? explained : undefined,
    others,
    machine: known === undefined ? readMachine([4]) : readMachineOf(known, familiesOf(known), []),
    foreign: undefined,
    ...NOT_DIALLED,
    wayBack: undefined,
    staleFlows: undefined,
    dns: { kind: 'not asked' },
    ...(known === undefined || explanation === undefined || question.dials === false
      ? {}
      : await readHere(explanation, {
          known,
          others,
          sends: question.sends === true,
          knowsPods: service?.pods !== undefined,
        })),
  }
}

const NOT_DIALLED: EndpointFacts = { ways: undefined, tries: [], ends: undefined, serviceTry: undefined }

/** The API server knows pods and other nodes; the proxy does not. */
export function withPods({ known, objects }: Pick<ToExamine, 'known' | 'objects'>): Known | undefined {
  if (known === undefined || objects === undefined || known.pods === objects.pods) return known
  const missing = objects.services.filter(
    ({ namespace, name }) => !known.services.some((each) => each.namespace === namespace && each.name === name),
  )
  return { ...known, pods: objects.pods, services: [...known.services, ...missing] }
}

/** A text: why the service has nothing that this client could dial. */
async function explainIt(question: ToExamine, known: Known): Promise<Explanation | string> {
  const { service, port, from, via } = question
  try {
    return await explainOne(question, known, { from, to: port === '' ? service : `${service}:${port}`, via })
  } catch (error) {
    if (!(error instanceof QuestionMistake)) throw error
    if (isAboutClient(known, question)) {
      const { apiError } = question
      throw apiError === undefined
        ? error
        : new QuestionMistake(`${error.message}. The API server was asked: ${apiError}`)
    }
    return error.message
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
    found.push({ kind, label, explanation, ...NOT_DIALLED })
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

export function familiesOf({ nodes }: Known): Family[] {
  return ([4, 6] as const).filter((family) => nodes[family] !== undefined)
}

/** With the link that leads to pods, and `links`: what pods send, and what is sent to them, comes in by those. */
export function readMachineOf(known: Known, families: readonly Family[], links: readonly string[]): MachineFacts {
  const podMtu = families.map((family) => readPodMtu(known, family)).find((each) => each !== undefined)
  const all = new Set([...links, ...(podMtu === undefined ? [] : [podMtu.link])])
  return { ...readMachine(families), podMtu, forwardingOff: readForwardingOff(families, [...all]) }
}

async function readHere(
  explanation: Explanation,
  {
    known,
    others,
    sends,
    knowsPods,
  }: Pick<HowToReach, 'known' | 'sends' | 'knowsPods'> & { readonly others: readonly OtherFrontend[] },
): Promise<Partial<ServiceExamination>> {
  const dns = await askNameServer(known, explanation)
  const { question, outcome } = explanation
  const led = [explanation, ...others.flatMap((other) => other.explanation ?? [])].filter(
    (each) => each.outcome === 'to',
  )
  const families = [...new Set(led.map((each) => ipFamily(each.question.destination)!))]
  const machine = readMachineOf(known, families, linksOf(led, question.source))
  if (outcome !== 'to') return { machine, dns }
  const isOwn = question.from === 'the node itself'
  const [wayBack] = isOwn || isAnyone(known, question.source) ? [] : findWays([ipBytes(question.source)])
  const foreign = await readForeignOf(known, (family) => {
    const own = led.filter((each) => ipFamily(each.question.destination) === family)
    return {
      packets: own.flatMap((each) => packetsOf(known, family, each)),
      tries: own.flatMap((each) => packetsOfTries(known, family, each)),
    }
  })
  // That is the answer: waiting for endpoints that cannot answer would add nothing.
  if (foreign.found.length > 0) return { machine, dns, foreign }
  const filteredBefore = readRpFiltered()
  const dialled = new Map<string, Promise<TryFact>>()
  const network = isOwn || isAnyone(known, question.source) ? undefined : networkWith(question.source)
  const departure = network === undefined ? undefined : departFrom(network)
  const how = { known, dialled, sends, departure, knowsPods, isWalled: foreign.walls.length > 0 }
  const here = await readEndpoints(explanation, how)
  const isAnswered = here.tries.every(isConnected)
  return {
    ...here,
    machine: { ...machine, rpFiltered: readRpFiltered() - filteredBefore },
    dns,
    // What passes shows that it passes.
    foreign:
      isOwn && isAnswered && here.tries.length > 0
        ? { ...foreign, doubts: foreign.doubts.filter(({ isOfThisNode }) => !isOfThisNode) }
        : foreign,
    wayBack: wayBack && {
      way: wayBack,
      to: question.source,
      ofClient: answerWay(question.source, explanation.backends.find(({ eligible }) => eligible)!.address, wayBack),
    },
    staleFlows: await readStaleFlows(ipFamily(question.destination)!, explanation, known),
    others:
      isAnswered || foreign.walls.length > 0
        ? await Promise.all(
            others.map(async (other) =>
              other.explanation?.outcome === 'to'
                ? {
                    ...other,
                    ...(await readEndpoints(other.explanation, how)),
                  }
                : other,
            ),
          )
        : others,
  }
}

/** By which the client's packets and the answers come in. */
function linksOf(led: readonly Explanation[], client: string): string[] {
  const endpoints = led.flatMap((each) => eligibleOf(each).map(({ address }) => address))
  return [
    ...new Set(
      findWays([client, ...endpoints].map((address) => ipBytes(address))).flatMap((way) =>
        way.kind === 'link' ? [way.link] : [],
      ),
    ),
  ]
}

function eligibleOf({ backends }: Explanation): Explanation['backends'] {
  return backends.filter((each) => each.eligible).slice(0, MOST_ENDPOINTS)
}

interface HowToReach {
  readonly known: Known
  /** Of a client that is a pod on this machine. */
  readonly departure: Departure | undefined
  /** Each endpoint is dialled once. */
  readonly dialled: Map<string, Promise<TryFact>>
  readonly sends: boolean
  /** The API server has told all pods, and the Service selects some. */
  readonly knowsPods: boolean
  /** This node's own attempts may fail where those of others do not. */
  readonly isWalled: boolean
}

/** The endpoints that one address leads to, and the address itself, dialled from this node. */
async function readEndpoints(
  explanation: Explanation,
  { known, dialled, sends, departure, isWalled, knowsPods }: HowToReach,
): Promise<EndpointFacts> {
  const { question } = explanation
  const eligible = eligibleOf(explanation)
  // The one service of UDP whose answer is known.
  const isNames = question.protocol === 'UDP' && question.port === 53 && isNameServer(question.to)
  const dial = ({ address, port }: { readonly address: string; readonly port: number }) => {
    const to = joinHostPort(address, port)
    const key = `${to}/${question.protocol}`
    if (!dialled.has(key))
      dialled.set(
        key,
        isNames ? tryNameServer(to, { address, port }) : tryEndpoint({ address, port }, { known, knowsPods }),
      )
    return dialled.get(key)!
  }
  const tries = question.protocol === 'TCP' || isNames ? await Promise.all(eligible.map(dial)) : []
  const canSend = departure !== undefined || question.from === 'the node itself'
  const isTried = canSend && (question.protocol === 'TCP' || isNames) && (isWalled || tries.every(isConnected))
  const { destination, port } = question
  const serviceTry = !isTried
    ? undefined
    : !isNames
      ? await tryService(question, eligible.length, departure)
      : departure === undefined
        ? await tryNameServer(joinHostPort(destination, port), { address: destination, port })
        : undefined
  const follow = (to: { readonly address: string; readonly port: number }) =>
    followTo(to, explanation, { known, departure })
  const lost = eligible.filter((_, i) => tries[i]?.result === 'no answer' || tries[i]?.result === 'unreachable')
  const followed = question.protocol === 'UDP' ? eligible : lost
  const ends =
    sends && canSend && question.protocol !== 'SCTP'
      ? await inTurn(followed.slice(0, MOST_FOLLOWED), follow)
      : undefined
  const isLost = serviceTry !== undefined && !isConnected(serviceTry)
  return {
    ways: waysTo({ question, backends: eligible }, tries, known),
    tries,
    ends,
    serviceTry,
    serviceEnd: sends && isLost ? await follow({ address: question.destination, port: question.port }) : undefined,
  }
}

async function tryEndpoint(
  { address, port }: { readonly address: string; readonly port: number },
  { known, knowsPods }: Pick<HowToReach, 'known' | 'knowsPods'>,
): Promise<TryFact> {
  const pod = podAt(known, address)
  const tried = { ...(await tryConnection(address, port, pod)), isNobodys: knowsPods && pod === '' }
  if (tried.result !== 'refused' && tried.result !== 'no answer') return tried
  const client = known.nodes[ipFamily(address)!]?.nodeIp
  return client === undefined ? tried : { ...tried, inside: readInside({ address, port }, client) }
}

/** By asking for a name that each cluster has: any answer will do. */
async function tryNameServer(
  to: string,
  { address, port }: { readonly address: string; readonly port: number },
): Promise<TryFact> {
  const answer = await lookUp(address, port, 'kubernetes.default.svc.cluster.local', 4)
  if (answer.kind !== 'silent') return { to, pod: '', result: 'connected', error: '' }
  return { to, pod: '', result: answer.error === 'ECONNREFUSED' ? 'refused' : 'no answer', error: answer.error }
}

function isNameServer(service: string): boolean {
  const [namespace, name = ''] = service.split('/')
  return namespace === 'kube-system' && NAME_SERVERS.has(name.replace(/:.*/, ''))
}

/** So often that an endpoint which does not answer this client is rarely missed, where each connection may get another one. */
const ATTEMPTS_PER_ENDPOINT = 4
const MOST_ATTEMPTS = 16

async function tryService(
  { destination, port, source }: Explanation['question'],
  endpoints: number,
  departure: Departure | undefined,
): Promise<TryFact> {
  const count = endpoints === 1 ? 1 : Math.min(MOST_ATTEMPTS, endpoints * ATTEMPTS_PER_ENDPOINT)
  const tries = await Promise.all(
    Array.from({ length: count }, () => tryConnection(destination, port, '', departure?.('tcp', source, 0))),
  )
  const failed = tries.filter((each) => !isConnected(each))
  const [first = tries[0]!] = failed
  return failed.length === 0 || failed.length === count ? first : { ...first, share: `${failed.length} of ${count}` }
}

function isConnected({ result }: TryFact): boolean {
  return result === 'connected'
}

/** Each takes seconds. */
const MOST_FOLLOWED = 3

async function inTurn<T, R>(values: readonly T[], work: (value: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  for (const value of values) results.push(await work(value))
  return results
}

async function followTo(
  { address, port }: { readonly address: string; readonly port: number },
  { question, backends }: Explanation,
  { known: { machineAddresses }, departure }: Pick<HowToReach, 'known' | 'departure'>,
): Promise<EndFact> {
  const { source, protocol } = question
  const flow = { source, sourcePort: clientPort(), destination: address, destinationPort: port }
  const around = {
    addresses: [...machineAddresses, ...backends.map((each) => each.address)],
    ports: backends.map((each) => each.port),
  }
  const family = ipFamily(address)!
  const { answer, trace, drops, dropsError } = await followPacket(flow, {
    family,
    protocol: protocol === 'UDP' ? 'UDP' : 'TCP',
    around,
    departure,
    // From this node to an endpoint, nothing is translated.
    keepsPort: departure === undefined && address !== question.destination,
  })
  return { to: joinHostPort(address, port), answer, droppedBy: trace.droppedBy, drops, dropsError }
}

/** After they were dialled: whoever did not answer for an address (ARP, ND) is known by then. */
function waysTo(
  { question, backends }: Pick<Explanation, 'question' | 'backends'>,
  tries: readonly TryFact[],
  known: Known,
): WayFact[] {
  const ways = findWays(backends.map(({ address }) => ipBytes(address)))
  const ofClients = clientWays(known, { question, backends }, ways)
  const isLost = tries.some((each) => !isConnected(each))
  const silent = isLost ? findSilentNeighbours() : new Set<Bytes>()
  return backends.map(({ address, port, node }, i) => {
    const way = ways[i]!
    const fact = {
      way,
      to: joinHostPort(address, port),
      mismatch: isService(address, known),
      ofClient: ofClients[i],
    }
    if (fact.mismatch !== undefined || tries[i] === undefined || isConnected(tries[i]) || way.kind === 'none')
      return fact
    const hop = way.kind === 'link' ? (way.via ?? ipBytes(address)) : undefined
    const silentHop = hop !== undefined && silent.has(hop) ? formatIp(hop) : undefined
    return { ...fact, silentHop, mismatch: mismatchOf(way, node, known) }
  })
}

/** It answers when it is dialled; what was translated once is not translated again. A proxy that relays dials it. */
function isService(address: string, { services, mode }: Known): string | undefined {
  const own = mode.name === 'userspace' ? undefined : services.find(({ clusterIPs }) => clusterIPs.includes(address))
  return (
    own && `is the cluster IP of the Service ${own.namespace}/${own.name}: a Service cannot be the endpoint of another`
  )
}

/** Where the route and the EndpointSlice do not agree about the node. */
function mismatchOf(way: Way, node: string, { nodes, machineAddresses }: Known): string | undefined {
  const isHere = [nodes[4]?.nodeName, nodes[6]?.nodeName].includes(node)
  if (way.kind === 'local' && node !== '' && !isHere)
    return `does not answer: its address is one of this machine's own, and its EndpointSlice says that it is on ${node}`
  if (way.kind !== 'link' || way.via === undefined || !isHere || machineAddresses.includes(formatIp(way.via)))
    return undefined
  return `does not answer: it is on this node, and its route leads to another machine, ${formatIp(way.via)} by ${way.link}`
}

/** Of both IP families. */
export async function readForeignOf(
  known: Known,
  packetsOfFamily: (family: Family) => Parameters<typeof readForeign>[1],
): Promise<ForeignFacts> {
  const all: ForeignFacts[] = []
  for (const family of [4, 6] as const) {
    const packets = packetsOfFamily(family)
    if (packets.packets.length > 0) all.push(await readForeign(family, packets, known))
  }
  return {
    found: all.flatMap(({ found }) => found),
    walls: all.flatMap(({ walls }) => walls),
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
