// Resolves FROM and TO to a connection in this cluster.

import type { Protocol, Service } from '../../kube/types.ts'
import { canonicalIp, cidrContains, type Family, ipFamily, joinHostPort, ipBytes } from '../../lib/ip.ts'
import { nearest } from '../../lib/nearest.ts'
import type { Connection } from '../../model/follow.ts'
import type { FrontendKind, NodeView } from '../../model/types.ts'
import type { Known } from './known.ts'
import { parseTarget, type Target } from './target.ts'

/** An invalid question. The message says what is valid. */
export class QuestionMistake extends Error {}

export interface Question {
  /** `node`, `outside`, an address, `[NAMESPACE/]POD`. */
  readonly from: string
  /** `[NAMESPACE/]SERVICE[:PORT][/PROTOCOL]`, `ADDRESS:PORT[/PROTOCOL]`, a URL; a ping: `SERVICE/icmp`, `ADDRESS/icmp`. */
  readonly to: string
  /** Which address of a service; absent: as it fits the client. */
  readonly via?: FrontendKind | undefined
  readonly family?: Family | undefined
  readonly sourcePort?: number | undefined
}

/** What --via may be. */
export const FRONTEND_KINDS: readonly FrontendKind[] = ['clusterIP', 'loadBalancerIP', 'externalIP', 'nodePort']

export interface ResolvedQuestion {
  readonly connection: Connection
  readonly family: Family
  /** For people: `pod default/client`, `the node itself`. */
  readonly fromLabel: string
  readonly toLabel: string
  /** The service that was named, whether or not it can be reached. */
  readonly service: Service | undefined
  /** The assumptions, as text. */
  readonly assumed: readonly string[]
}

/** A client outside the cluster, by an address that no machine has (RFC 5737, RFC 3849). */
const OUTSIDE: Readonly<Record<Family, string>> = { 4: '203.0.113.7', 6: '2001:db8:ffff::7' }

/** Throws a QuestionMistake. */
export function resolveQuestion(known: Known, question: Question): ResolvedQuestion {
  const assumed: string[] = []
  const target = parseTarget(question.to)
  if (typeof target === 'string') throw new QuestionMistake(target)
  const service = target.service === undefined ? undefined : findService(known, target.service)
  const dialled =
    service === undefined ? dialAddress(target) : dialService(known, service, { target, question, assumed })
  const family = ipFamily(dialled.address)!
  const client = resolveClient(known, question.from, { family, destination: dialled.address })
  const { address: destination, port, protocol } = dialled
  return {
    connection: { ...client.connection, destination, port, protocol },
    family,
    fromLabel: client.label,
    toLabel: service === undefined ? joinHostPort(destination, port) : `${service.namespace}/${service.name}`,
    service,
    assumed,
  }
}

interface DialledAddress {
  readonly address: string
  readonly port: number
  readonly protocol: Connection['protocol']
}

function dialAddress({ address, port, protocol }: Target): DialledAddress {
  if (protocol === 'ICMP' && address !== undefined) return { address, port: 0, protocol }
  if (address === undefined || port === undefined || typeof port === 'string') {
    throw new QuestionMistake(`Cannot dial ${address ?? 'that'} without a port: use ADDRESS:PORT, as in 10.96.0.1:443`)
  }
  return { address, port, protocol: protocol ?? 'TCP' }
}

interface ServiceContext {
  readonly target: Target
  readonly question: Question
  readonly assumed: string[]
}

function dialService(known: Known, service: Service, { target, question, assumed }: ServiceContext): DialledAddress {
  const name = `${service.namespace}/${service.name}`
  const { protocol } = target
  const port = protocol === 'ICMP' ? undefined : choosePort(service, { port: target.port, protocol }, assumed)
  const kind = question.via ?? kindFor(known, service, { nodePort: port?.nodePort ?? 0, from: question.from })
  const family = question.family ?? familyFor(known, service, question.from)
  const ofFamily = (ips: readonly string[]) => ips.find((ip) => ipFamily(ip) === family)
  const clusterIP = ofFamily(service.clusterIPs)
  if (kind === 'nodePort') {
    if (port === undefined) throw new QuestionMistake('Cannot ping a node port: it is on an address of the node')
    const node = known.nodes[family]
    const address = node?.nodePortAddresses.kind === 'only' ? node.nodePortAddresses.addresses[0] : node?.nodeIp
    if (address !== undefined && port.nodePort !== 0) {
      assumed.push(`dialled at its node port on ${address}`)
      return { address, port: port.nodePort, protocol: port.protocol }
    }
    throw new QuestionMistake(whyNoNodePort(name, port, node))
  }
  const addresses = {
    clusterIP,
    loadBalancerIP: ofFamily(service.ingress.map(({ ip }) => ip)),
    externalIP: ofFamily(service.externalIPs),
  }
  const address = addresses[kind] ?? (question.via === undefined ? clusterIP : undefined)
  const canonical = address === undefined ? undefined : canonicalIp(address)
  if (canonical === undefined) throw new QuestionMistake(whyNoAddress(service, family, question.via))
  if (kind !== 'clusterIP') assumed.push(`dialled at its ${kind === 'externalIP' ? 'external' : 'load-balancer'} IP`)
  return { address: canonical, port: port?.port ?? 0, protocol: port?.protocol ?? 'ICMP' }
}

interface AskedPort {
  readonly port: Target['port']
  readonly protocol: Protocol | undefined
}

function choosePort(service: Service, { port, protocol }: AskedPort, assumed: string[]): Service['ports'][number] {
  const [first] = service.ports
  const name = `${service.namespace}/${service.name}`
  const all = service.ports.map((each) => `${each.name === '' ? '' : `${each.name} `}${each.port}/${each.protocol}`)
  if (port === undefined) {
    const found = service.ports.find((each) => protocol === undefined || each.protocol === protocol)
    if (found === undefined) throw new QuestionMistake(`Service ${name} has no ${protocol} port, but ${all.join(', ')}`)
    if (service.ports.length > 1) assumed.push(`of its ports (${all.join(', ')}), the first`)
    return found
  }
  const byName = service.ports.find((each) => each.name === port)
  const byNumber = service.ports.find(
    (each) => each.port === port && (protocol === undefined || each.protocol === protocol),
  )
  const found = byName ?? byNumber
  if (found !== undefined) return found
  if (typeof port === 'string') {
    throw new QuestionMistake(`Service ${name} has no port named ${JSON.stringify(port)}, but ${all.join(', ')}`)
  }
  // A port that it does not have can be dialled all the same: the answer says what comes of it.
  return { name: '', port, protocol: protocol ?? first?.protocol ?? 'TCP', nodePort: 0 }
}

function whyNoNodePort(
  name: string,
  { name: portName, port, nodePort }: Service['ports'][number],
  node: NodeView | undefined,
): string {
  if (nodePort === 0) return `Service ${name} has no node port for ${portName || port}`
  const open = node?.nodePortAddresses
  const why =
    open?.kind === 'only' ? 'nodePortAddresses has none of its addresses' : 'the node has no address of this family'
  return `Node port ${nodePort} of Service ${name} is open on no address of this node: ${why}`
}

/** `outside`, or an address that is neither a pod's, nor the node's, nor another node's. */
export function isOutside(known: Known, from: string): boolean {
  if (from === 'outside') return true
  const address = canonicalIp(from)
  if (address === undefined || known.machineAddresses.includes(address)) return false
  const node = known.nodes[ipFamily(address)!]
  const bytes = ipBytes(address)
  const detector = node?.localDetector
  if (detector?.kind === 'cidr' && detector.cidrs.some((cidr) => cidrContains(cidr, bytes))) return false
  return (
    !known.pods.some(({ ips }) => ips.includes(address)) &&
    !known.slices.some(({ endpoints }) => endpoints.some((each) => each.address === address)) &&
    !known.otherNodes.some(({ addresses }) => addresses.includes(address))
  )
}

/** From outside, nothing reaches a cluster IP. */
function kindFor(
  known: Known,
  service: Service,
  { nodePort, from }: { readonly nodePort: number; readonly from: string },
): FrontendKind {
  if (!isOutside(known, from)) return 'clusterIP'
  if (service.ingress.some(({ ip }) => ip !== '')) return 'loadBalancerIP'
  if (service.externalIPs.length > 0) return 'externalIP'
  return nodePort === 0 ? 'clusterIP' : 'nodePort'
}

function familyFor(known: Known, service: Service, from: string): Family {
  const given = ipFamily(from) ?? ipFamily(findPod(known, from)?.ips[0] ?? '')
  const families = service.clusterIPs.map((ip) => ipFamily(ip)).filter((family) => family !== undefined)
  if (given !== undefined && (families.length === 0 || families.includes(given))) return given
  return families[0] ?? 4
}

function whyNoAddress(service: Service, family: Family, via: FrontendKind | undefined): string {
  const name = `${service.namespace}/${service.name}`
  if (service.type === 'ExternalName')
    return `Service ${name} is an ExternalName: DNS answers with another name, and no proxy is involved`
  if (service.clusterIPs[0] === 'None') {
    return `Service ${name} is headless (clusterIP: None): DNS answers with the addresses of its pods, and no proxy is involved. Use the address of a pod instead`
  }
  return `Service ${name} has no ${via ?? 'cluster IP'} of IPv${family}: its cluster IPs are ${service.clusterIPs.join(', ') || 'none'}`
}

function findService(known: Known, { namespace, name }: NonNullable<Target['service']>): Service {
  const found = known.services.find((each) => each.name === name && each.namespace === namespace)
  if (found !== undefined) return found
  const elsewhere = known.services.filter((each) => each.name === name).map((each) => `${each.namespace}/${name}`)
  const near = nearest(
    `${namespace}/${name}`,
    known.services.map((each) => `${each.namespace}/${each.name}`),
  )
  const hint =
    elsewhere.length > 0
      ? `; there is ${elsewhere.join(', ')}`
      : near === undefined
        ? `; ${known.source} has ${known.services.length} services`
        : `; the nearest name is ${near}`
  throw new QuestionMistake(`There is no Service ${namespace}/${name}${hint}`)
}

interface ResolvedClient {
  readonly connection: Pick<Connection, 'source' | 'inputInterface'>
  readonly label: string
}

function resolveClient(
  known: Known,
  from: string,
  { family, destination }: { readonly family: Family; readonly destination: string },
): ResolvedClient {
  const node = known.nodes[family]
  const nodeIp = node?.nodeIp ?? (family === 4 ? '127.0.0.1' : '::1')
  if (from === 'node') {
    // To an address of its own, a machine sends from that address.
    const isOwn = known.machineAddresses.includes(destination) || /^127\.|^::1$/.test(destination)
    return { connection: { source: isOwn ? destination : nodeIp, inputInterface: undefined }, label: 'the node itself' }
  }
  if (from === 'outside') {
    return { connection: { source: OUTSIDE[family], inputInterface: 'eth0' }, label: 'outside the cluster' }
  }
  const address = canonicalIp(from)
  if (address !== undefined) {
    if (ipFamily(address) !== family) {
      throw new QuestionMistake(`Cannot send from ${from} to ${destination}: they are of different IP families`)
    }
    const isOwn = known.machineAddresses.includes(address)
    const pod = known.pods.find(({ ips }) => ips.includes(address))
    const inputInterface = isOwn ? undefined : interfaceOf(known, family, address)
    const words = isOwn ? 'the node itself' : pod === undefined ? address : `pod ${pod.namespace}/${pod.name}`
    return { connection: { source: address, inputInterface }, label: words }
  }
  const pod = findPod(known, from)
  const ip = pod?.ips.find((each) => ipFamily(each) === family)
  if (pod === undefined || ip === undefined) throw new QuestionMistake(whyNoPod(known, from, family))
  if (known.machineAddresses.includes(ip)) {
    return {
      connection: { source: ip, inputInterface: undefined },
      label: `pod ${pod.namespace}/${pod.name} on the host network`,
    }
  }
  const words = `pod ${pod.namespace}/${pod.name} on ${pod.nodeName || 'an unknown node'}`
  return { connection: { source: ip, inputInterface: interfaceOf(known, family, ip) }, label: words }
}

/** By which interface a client's packets come in matters only where the local detector goes by interface. */
function interfaceOf(known: Known, family: Family, address: string): string {
  const detector = known.nodes[family]?.localDetector
  const isOnNode =
    known.pods.some(({ ips, nodeName }) => ips.includes(address) && nodeName === known.nodes[family]?.nodeName) ||
    known.slices.some(({ endpoints }) =>
      endpoints.some((each) => each.address === address && each.nodeName === known.nodes[family]?.nodeName),
    )
  if (!isOnNode) return 'eth0'
  if (detector?.kind === 'interface') return detector.name
  return detector?.kind === 'interfacePrefix' ? `${detector.prefix}0` : 'pods'
}

function findPod({ pods }: Known, text: string): Known['pods'][number] | undefined {
  const [namespace, name] = text.includes('/') ? text.split('/') : ['default', text]
  return pods.find((pod) => pod.name === name && pod.namespace === namespace)
}

function whyNoPod({ pods, source }: Known, text: string, family: Family): string {
  if (pods.length === 0) {
    return `Cannot find the client ${JSON.stringify(text)}: ${source} has no pods. FROM must be an address, node or outside; with --kubeconfig it may be a pod`
  }
  const near = nearest(
    text.includes('/') ? text : `default/${text}`,
    pods.map((pod) => `${pod.namespace}/${pod.name}`),
  )
  return `There is no pod ${JSON.stringify(text)} with an IPv${family} address${near === undefined ? '' : `; the nearest name is ${near}`}. FROM may also be an address, node or outside`
}
