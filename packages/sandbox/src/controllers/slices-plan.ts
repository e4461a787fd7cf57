// The EndpointSlices of a service: at most 100 endpoints each, one family each, and as few of them touched as a change
// allows, because every proxy in the cluster receives each. Pure.

import { addHints, hintPolicyOf } from './topology-hints.ts'
import { findCandidates, portsKey, targetRef } from './endpoint-candidates.ts'
import { headlessLabel } from './endpoints-plan.ts'
import { isHeadless } from '../apiserver/objects/service.ts'
import { sameJson } from '../apiserver/json.ts'
import { zoneLabel } from '../apiserver/objects/node.ts'
import type { Candidate, TargetPort } from './endpoint-candidates.ts'
import type { EndpointSlice, SliceEndpoint, SlicePort } from '../apiserver/objects/endpoints.ts'
import type { IPFamily, Service } from '../apiserver/objects/service.ts'
import type { Labels } from '../apiserver/objects/meta.ts'
import type { Node } from '../apiserver/objects/node.ts'
import type { Pod } from '../apiserver/objects/pod.ts'

export const serviceNameLabel = 'kubernetes.io/service-name'
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
export const sliceControllerName = 'endpointslice-controller.k8s.io'
export const maxEndpointsPerSlice = 100

/** What a slice shall be: a new one, or what becomes of an existing one. */
export interface DesiredSlice {
  readonly existing: EndpointSlice | undefined
  readonly addressType: IPFamily
  readonly labels: Labels
  readonly ports: readonly SlicePort[]
  readonly endpoints: readonly SliceEndpoint[]
}

export interface SlicesPlan {
  readonly write: readonly DesiredSlice[]
  readonly remove: readonly EndpointSlice[]
}

export interface SliceFacts {
  readonly pods: readonly Pod[]
  readonly nodes: readonly Node[]
  readonly existing: readonly EndpointSlice[]
}

export function planSlices(service: Service, facts: SliceFacts): SlicesPlan {
  const families = service.spec.ipFamilies ?? ['IPv4']
  const plans = families.map((family) => planFamily(service, family, facts))
  const gone = facts.existing.filter(({ addressType }) => !families.some((family) => family === addressType))
  return { write: plans.flatMap(({ write }) => write), remove: [...gone, ...plans.flatMap(({ remove }) => remove)] }
}

function planFamily(service: Service, family: IPFamily, facts: SliceFacts): SlicesPlan {
  const candidates = findCandidates(service, facts.pods, family)
  const zones = new Map(facts.nodes.map(({ metadata }) => [metadata.name, metadata.labels?.[zoneLabel]]))
  const endpoints = addHints(
    candidates.map((candidate) => endpointOf(candidate, zones)),
    hintPolicyOf(service),
    facts.nodes,
  )
  const groups = new Map<string, Group>()
  for (const [i, { ports }] of candidates.entries()) {
    const key = portsKey(ports)
    const group = groups.get(key) ?? { ports: ports.map(slicePort), endpoints: [] }
    group.endpoints.push(endpoints[i]!)
    groups.set(key, group)
  }
  const existing = facts.existing.filter(({ addressType }) => addressType === family)
  return planGroups({ family, labels: sliceLabels(service) }, [...groups.values()], existing)
}

interface Group {
  readonly ports: readonly SlicePort[]
  readonly endpoints: SliceEndpoint[]
}

function endpointOf(candidate: Candidate, zones: ReadonlyMap<string, string | undefined>): SliceEndpoint {
  const { address, ready, serving, terminating, hostname, pod } = candidate
  const { nodeName } = pod.spec
  const zone = nodeName === undefined ? undefined : zones.get(nodeName)
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(hostname === undefined ? {} : { hostname }),
    targetRef: targetRef(pod),
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(zone === undefined ? {} : { zone }),
  }
}

function slicePort({ name, protocol, port, appProtocol }: TargetPort): SlicePort {
  return { name, protocol, port, ...(appProtocol === undefined ? {} : { appProtocol }) }
}

/** The service's own labels, and those by which proxies find the slice. */
function sliceLabels(service: Service): Labels {
  const labels: Labels = {
    ...service.metadata.labels,
    [serviceNameLabel]: service.metadata.name,
    [managedByLabel]: sliceControllerName,
  }
  if (isHeadless(service)) labels[headlessLabel] = ''
  return labels
}

interface Common {
  readonly family: IPFamily
  readonly labels: Labels
}

function planGroups(common: Common, groups: readonly Group[], existing: readonly EndpointSlice[]): SlicesPlan {
  // Without endpoints one empty slice remains: proxies learn from it that there are none.
  if (groups.length === 0) return keepOne(common, existing)
  const unused = new Set(existing)
  const write = groups.flatMap(({ ports, endpoints }) => {
    const own = existing.filter((slice) => unused.has(slice) && samePorts(slice.ports ?? [], ports))
    own.forEach((slice) => unused.delete(slice))
    return packGroup(common, { ports, endpoints }, own)
  })
  const emptied = write.filter(({ existing, endpoints }) => existing !== undefined && endpoints.length === 0)
  const kept = write.filter((desired) => desired.endpoints.length > 0)
  // An old slice of other ports is better turned into a new one than deleted beside it.
  const spare = [...unused, ...emptied.map(({ existing }) => existing!)]
  const reused = kept.map((desired) =>
    desired.existing === undefined ? { ...desired, existing: spare.pop() } : desired,
  )
  return { write: reused.filter(isChange), remove: spare }
}

function keepOne(common: Common, existing: readonly EndpointSlice[]): SlicesPlan {
  const [first, ...rest] = existing
  const desired = { existing: first, addressType: common.family, labels: common.labels, ports: [], endpoints: [] }
  return { write: isChange(desired) ? [desired] : [], remove: rest }
}

/** Ports are the same whatever their order. */
function samePorts(a: readonly SlicePort[], b: readonly SlicePort[]): boolean {
  const sorted = (ports: readonly SlicePort[]) => [...ports].sort((x, y) => ((x.name ?? '') < (y.name ?? '') ? -1 : 1))
  return sameJson(sorted(a), sorted(b))
}

/** Each endpoint stays in the slice that it is in; new ones fill the fullest slice that is not full. */
function packGroup({ family, labels }: Common, group: Group, slices: readonly EndpointSlice[]): DesiredSlice[] {
  const waiting = new Map(group.endpoints.map((endpoint) => [identity(endpoint), endpoint]))
  const packed = slices.map((existing): Pick<DesiredSlice, 'existing'> & { endpoints: SliceEndpoint[] } => {
    const endpoints = (existing.endpoints ?? []).flatMap((before) => {
      const now = waiting.get(identity(before))
      waiting.delete(identity(before))
      return now === undefined ? [] : [now]
    })
    return { existing, endpoints }
  })
  const fullestFirst = [...packed].sort((a, b) => b.endpoints.length - a.endpoints.length)
  for (const endpoint of waiting.values()) {
    let target = fullestFirst.find(({ endpoints }) => endpoints.length < maxEndpointsPerSlice)
    if (target === undefined) {
      target = { existing: undefined, endpoints: [] }
      packed.push(target)
      fullestFirst.push(target)
    }
    target.endpoints.push(endpoint)
  }
  return packed.map((one) => ({ ...one, addressType: family, labels, ports: group.ports }))
}

function identity({ addresses, targetRef }: SliceEndpoint): string {
  return `${targetRef?.uid ?? ''} ${addresses[0]}`
}

function isChange({ existing, labels, ports, endpoints }: DesiredSlice): boolean {
  return (
    existing === undefined ||
    !sameJson(existing.metadata.labels, labels) ||
    !sameJson(existing.ports ?? [], ports) ||
    !sameJson(existing.endpoints ?? [], endpoints)
  )
}
