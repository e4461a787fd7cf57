// For a connection that no frontend takes: the frontends near it, and why they do not.

import { joinHostPort } from '../../lib/ip.ts'
import { describeFrontend } from '../../model/claims.ts'
import type { Connection } from '../../model/follow.ts'
import { whyNotServed } from '../../model/service-ports.ts'
import { type Decided, isOfService, type Known } from './known.ts'

export interface Miss {
  /** What was nearly dialled. */
  readonly what: string
  /** Why that is not what was dialled. */
  readonly why: string
}

const MOST_MISSES = 8

export function findMisses(known: Known, decided: Decided, { destination, port, protocol }: Connection): Miss[] {
  const misses: Miss[] = []
  const dialled = `${port}/${protocol}`
  const add = (what: string, why: string) => {
    if (misses.length < MOST_MISSES) misses.push({ what, why })
  }
  for (const { view, frontend } of decided.index.all()) {
    if (frontend.address !== destination) continue
    const what = `${describeFrontend(frontend)} of ${view.name}`
    if (frontend.port === port) add(what, `wrong protocol: it is ${frontend.protocol}, not ${protocol}`)
    else add(what, `wrong port: it is ${frontend.port}/${frontend.protocol}, not ${dialled}`)
  }
  missUnserved(decided, destination, add)
  missNodePort(known, decided, { destination, port, protocol }, add)
  missOtherFamily(known, destination, add)
  missEndpoint(known, { destination, port }, add)
  return misses
}

type Add = (what: string, why: string) => void

/** A service that has the address, and that this proxy leaves alone. */
function missUnserved({ services, problems }: Decided, destination: string, add: Add): void {
  for (const service of services.values()) {
    const name = `${service.namespace}/${service.name}`
    const has = [...service.clusterIPs, ...service.externalIPs, ...service.ingress.map(({ ip }) => ip)]
    if (!has.includes(destination)) continue
    const why = whyNotServed(service)
    if (why?.kind === 'another proxy') {
      add(
        `Service ${name}`,
        `service of another proxy: its label service.kubernetes.io/service-proxy-name is ${JSON.stringify(why.proxy)}`,
      )
    } else if (why !== undefined) add(`Service ${name}`, `it is ${why.kind}`)
    const proxied = service.ingress.find(({ ip, ipMode }) => ip === destination && ipMode !== 'VIP')
    if (proxied !== undefined) {
      add(`load-balancer IP of ${name}`, `ipMode is ${proxied.ipMode}: the load balancer handles it, not the proxy`)
    }
    for (const [object, messages] of problems) {
      if (!isOfService(object, name)) continue
      for (const message of messages) add(object, message)
    }
  }
}

function missNodePort(
  known: Known,
  { index, isOwnAddress, node }: Decided,
  { destination, port, protocol }: Pick<Connection, 'destination' | 'port' | 'protocol'>,
  add: Add,
): void {
  const found = index.nodePort(protocol, port)
  const other = known.otherNodes.find(({ addresses }) => addresses.includes(destination))
  if (found === undefined) {
    if (other !== undefined) add(`node ${other.name}`, `${destination} is the address of another node`)
    return
  }
  const what = `node port ${port}/${protocol} of ${found.view.name}`
  if (other !== undefined) {
    add(what, `address of another node: ${destination} is ${other.name}; ask with --node ${other.name}`)
  } else if (isOwnAddress(destination)) {
    const open = index.openAddresses
    add(what, `not open on ${destination}: nodePortAddresses opens it only on ${open.join(', ') || 'no address'}`)
  } else add(what, `${destination} is not an address of this node (${node.nodeName} has ${node.nodeIp})`)
}

/** The same service under its address of the other IP family. */
function missOtherFamily({ services, nodes }: Known, destination: string, add: Add): void {
  const family = destination.includes(':') ? 6 : 4
  if (nodes[family] !== undefined) return
  const owner = services.find(({ clusterIPs }) => clusterIPs.includes(destination))
  if (owner !== undefined) add(`Service ${owner.namespace}/${owner.name}`, `the node does not have IPv${family}`)
}

/** The address of a pod: no proxy is involved. */
function missEndpoint(
  { slices }: Known,
  { destination, port }: Pick<Connection, 'destination' | 'port'>,
  add: Add,
): void {
  for (const slice of slices) {
    if (!slice.endpoints.some(({ address }) => address === destination)) continue
    add(
      `endpoint ${joinHostPort(destination, port)} of ${slice.namespace}/${slice.serviceName}`,
      'this is a pod, not a Service: no proxy is involved',
    )
    return
  }
}
