// Reads all that the doctor looks at. Opens connections to endpoints and closes them at once; changes nothing.

import { explain, type KernelState, prepare } from '../explain/explain.ts'
import type { Explanation } from '../explain/explanation.ts'
import type { Known } from '../explain/known.ts'
import { QuestionMistake } from '../explain/question.ts'
import { readKernelState } from '../explain/read-kernel.ts'
import type { ReadObjects } from '../explain/read-known.ts'
import type { JsonObject } from '../kube/encoding/json-reader.ts'
import type { Service } from '../kube/types.ts'
import type { Family } from '../lib/ip.ts'
import { nearest } from '../lib/nearest.ts'
import type { Facts, PodFact, ProxyFact, ServiceFact } from './facts.ts'
import { packetTo, readForeign, readMachine, readRpFiltered, tryConnection } from './read-machine.ts'

export interface ToExamine {
  readonly service: string
  readonly port: string
  readonly from: string
  readonly proxy: ProxyFact
  readonly known: Known | undefined
  readonly objects: (ReadObjects & { readonly server: string }) | undefined
  /** Whether this machine is the node: then its kernel and its settings are looked at, and endpoints are dialled. */
  readonly isHere: boolean
  /** What was read of the kernel for another question; absent: it is read for this one. */
  readonly states?: Map<Family, Promise<KernelState>>
  /** False: endpoints are not dialled, nor rules of others looked at. */
  readonly dials?: boolean
}

/** So many endpoints are dialled. */
const MOST_TRIES = 4

export async function readFacts(question: ToExamine): Promise<Facts> {
  const { service: name, port, from, proxy, objects, isHere } = question
  const known = withPods(question)
  const service = known && serviceFact(known, objects, name)
  const base = {
    asked: { service: name, port, from },
    proxy,
    api: objects && { server: objects.server },
    service,
    near: known === undefined ? [] : nearNames(known, name),
  }
  const { explanation, mistake, family } =
    service === undefined || known === undefined ? NOTHING : await explainIt(question, known)
  const here = isHere && question.dials !== false ? await readHere(family, explanation, known) : NOT_HERE
  return { ...base, explanation, mistake, ...here }
}

const NOTHING = { explanation: undefined, mistake: undefined, family: 4 } as const
const UNKNOWN_MACHINE = {
  forwarding: undefined,
  conntrack: undefined,
  smallMtus: [],
  strictRpFilter: [],
  rpFiltered: 0,
}
const NOT_HERE = { machine: UNKNOWN_MACHINE, foreign: [], tries: [], serviceTry: undefined }

/** The API server knows pods and other nodes; the proxy does not. */
export function withPods({ known, objects }: Pick<ToExamine, 'known' | 'objects'>): Known | undefined {
  if (known === undefined || objects === undefined || known.pods === objects.pods) return known
  const missing = objects.services.filter(
    ({ namespace, name }) => !known.services.some((each) => each.namespace === namespace && each.name === name),
  )
  return { ...known, pods: objects.pods, services: [...known.services, ...missing] }
}

async function explainIt(
  { service, port, from, isHere, states = new Map() }: ToExamine,
  known: Known,
): Promise<{ explanation: Explanation | undefined; mistake: string | undefined; family: Family }> {
  const to = port === '' ? service : `${service}:${port}`
  try {
    const prepared = prepare(known, { from, to })
    const { family } = prepared.asked
    const state = isHere ? await stateOf(known.mode.name, family, states) : undefined
    return { explanation: explain(prepared, state), mistake: undefined, family }
  } catch (error) {
    if (!(error instanceof QuestionMistake)) throw error
    return { explanation: undefined, mistake: error.message, family: 4 }
  }
}

function stateOf(mode: string, family: Family, states: Map<Family, Promise<KernelState>>): Promise<KernelState> {
  let state = states.get(family)
  if (state === undefined) states.set(family, (state = readKernelState(mode, family)))
  return state
}

type Here = Pick<Facts, 'machine' | 'foreign' | 'tries' | 'serviceTry'>

async function readHere(family: Family, explanation: Explanation | undefined, known: Known | undefined): Promise<Here> {
  const machine = readMachine(family)
  if (explanation === undefined || explanation.outcome !== 'to') {
    return { machine, foreign: [], tries: [], serviceTry: undefined }
  }
  const { question, backends } = explanation
  const eligible = backends.filter((each) => each.eligible).slice(0, MOST_TRIES)
  const nodeIp = known?.nodes[family]?.nodeIp ?? question.source
  // From this node, and from another client that passes through it.
  const clients = [
    { source: nodeIp, inputInterface: undefined },
    { source: family === 4 ? '203.0.113.7' : '2001:db8:ffff::7', inputInterface: 'eth0' },
  ]
  const packets = eligible.flatMap(({ address, port }) => clients.map((client) => packetTo(address, port, client)))
  const foreign = await readForeign(family, [
    ...packets,
    packetTo(question.destination, question.port, { source: nodeIp, inputInterface: undefined }),
  ])
  if (question.protocol !== 'TCP') return { machine, foreign, tries: [], serviceTry: undefined }
  const podAt = (ip: string) => {
    const pod = known?.pods.find(({ ips }) => ips.includes(ip))
    return pod === undefined ? '' : `-n ${pod.namespace} ${pod.name}`
  }
  const filteredBefore = readRpFiltered()
  const tries = await Promise.all(eligible.map(({ address, port }) => tryConnection(address, port, podAt(address))))
  // What the node may not reach by itself says nothing about others.
  const isOwn = question.from === 'the node itself'
  const serviceTry =
    isOwn && tries.every(({ result }) => result === 'connected')
      ? await tryConnection(question.destination, question.port, '')
      : undefined
  return { machine: { ...machine, rpFiltered: readRpFiltered() - filteredBefore }, foreign, tries, serviceTry }
}

function serviceFact(known: Known, objects: ReadObjects | undefined, name: string): ServiceFact | undefined {
  const service = known.services.find((each) => `${each.namespace}/${each.name}` === name)
  if (service === undefined) return undefined
  const raw = objects?.raw.services.find((json) => keyOf(json) === name)
  const spec = recordOf(raw?.['spec'])
  const selector = raw === undefined ? undefined : stringsOf(spec['selector'])
  const own = known.slices.filter((slice) => `${slice.namespace}/${slice.serviceName}` === name)
  return {
    type: service.type,
    clusterIP: service.clusterIPs[0] ?? '',
    externalName: typeof spec['externalName'] === 'string' ? spec['externalName'] : '',
    proxyName: service.labels?.['service.kubernetes.io/service-proxy-name'],
    // Without an API server, a service that has endpoints has them from somewhere.
    selector: raw === undefined ? {} : selector,
    ports: portsOf(service, spec),
    pods: objects === undefined || selector === undefined ? undefined : podsOf(objects, service.namespace, selector),
    endpoints: own.reduce((sum, { endpoints }) => sum + endpoints.length, 0),
    endpointPorts: [
      ...new Set(
        own.flatMap(({ ports }) => ports.map((port) => `${port.name || '(unnamed)'} ${port.port}/${port.protocol}`)),
      ),
    ],
  }
}

function portsOf(service: Service, spec: JsonObject): ServiceFact['ports'] {
  const raw = Array.isArray(spec['ports']) ? spec['ports'].map(recordOf) : []
  return service.ports.map(({ name, port, protocol }, i) => {
    const target = raw[i]?.['targetPort']
    const isGiven = typeof target === 'string' || typeof target === 'number'
    return { name, port, protocol, targetPort: isGiven ? String(target) : String(port) }
  })
}

function podsOf({ raw }: ReadObjects, namespace: string, selector: Readonly<Record<string, string>>): PodFact[] {
  const wanted = Object.entries(selector)
  return raw.pods
    .filter((json) => recordOf(json['metadata'])['namespace'] === namespace)
    .filter((json) => {
      const labels = recordOf(recordOf(json['metadata'])['labels'])
      return wanted.every(([key, value]) => labels[key] === value)
    })
    .map(podFact)
}

function podFact(json: JsonObject): PodFact {
  const status = recordOf(json['status'])
  const conditions = Array.isArray(status['conditions']) ? status['conditions'].map(recordOf) : []
  const ready = conditions.find(({ type }) => type === 'Ready')
  const containers = recordOf(json['spec'])['containers']
  const ports = (Array.isArray(containers) ? containers.map(recordOf) : []).flatMap(({ ports: list }) =>
    Array.isArray(list) ? list.map(recordOf) : [],
  )
  const why = [ready?.['reason'], ready?.['message']].filter((each) => typeof each === 'string' && each !== '')
  return {
    name: String(recordOf(json['metadata'])['name']),
    phase: typeof status['phase'] === 'string' ? status['phase'] : 'in no phase',
    ready: ready?.['status'] === 'True',
    why: why.join(': '),
    portNames: ports.flatMap(({ name }) => (typeof name === 'string' ? [name] : [])),
  }
}

function nearNames({ services }: Known, name: string): string[] {
  const near = nearest(
    name,
    services.map((each) => `${each.namespace}/${each.name}`),
  )
  const [, plain] = name.split('/')
  const elsewhere = services.filter((each) => each.name === plain).map((each) => `${each.namespace}/${each.name}`)
  return [...new Set([...elsewhere, ...(near === undefined ? [] : [near])])].filter((each) => each !== name)
}

function keyOf(json: JsonObject): string {
  const { namespace, name } = recordOf(json['metadata'])
  return `${String(namespace)}/${String(name)}`
}

function recordOf(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {}
}

function stringsOf(value: unknown): Record<string, string> | undefined {
  const entries = Object.entries(recordOf(value)).filter(
    (pair): pair is [string, string] => typeof pair[1] === 'string',
  )
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
