// What a running proxy says of itself, as an explanation needs it.

import type { StateAnswer } from '../../serve/control/state.ts'
import type { EndpointSlice, Service } from '../../kube/types.ts'
import type { RetryScope } from '../../model/connect-retry.ts'
import type { Known } from './known.ts'

export function knownFromState(state: StateAnswer, modeNamed: (name: string) => Known['mode']): Known {
  const { config, families, mode, machineAddresses, ejected = [], socketBalancing, pid } = state
  return {
    source: `the proxy of this node (process ${pid})`,
    hasObjects: true,
    mode: modeNamed(mode.name),
    nodes: Object.fromEntries(families.map(({ family, node }) => [family, node])),
    machineAddresses,
    services: mergeServices(families.flatMap(({ services }) => services)),
    slices: mergeSlices(families.flatMap(({ slices }) => slices)),
    allowExternalIPs: true,
    localhostNodePorts: blockOf(config, 'iptables')['localhostNodePorts'] !== false,
    connectRetry: scopeOf(config['connectRetry']),
    ejected: new Map(
      ejected.map(({ backend, reason, sinceMs }) => [backend, `${reason}, since ${new Date(sinceMs).toISOString()}`]),
    ),
    rungs: mergeRungs(families),
    socketBalancing,
    otherNodes: [],
    pods: [],
  }
}

function scopeOf(value: unknown): RetryScope {
  return value === 'annotated' || value === true ? value : false
}

function mergeRungs(families: StateAnswer['families']): Map<string, ReadonlyMap<string, number>> {
  const merged = new Map<string, ReadonlyMap<string, number>>()
  for (const { rungs = {} } of families) {
    for (const [name, each] of Object.entries(rungs))
      merged.set(name, new Map([...(merged.get(name) ?? []), ...Object.entries(each)]))
  }
  return merged
}

/** Each family has its own half of a service. */
function mergeServices(halves: readonly Service[]): Service[] {
  const merged = new Map<string, Service>()
  for (const half of halves) {
    const key = `${half.namespace}/${half.name}`
    const other = merged.get(key)
    merged.set(
      key,
      other === undefined
        ? half
        : {
            ...other,
            clusterIPs: union(other.clusterIPs, half.clusterIPs),
            externalIPs: union(other.externalIPs, half.externalIPs),
            loadBalancerSourceRanges: union(other.loadBalancerSourceRanges, half.loadBalancerSourceRanges),
            ingress: [
              ...other.ingress,
              ...half.ingress.filter(({ ip }) => !other.ingress.some((each) => each.ip === ip)),
            ],
          },
    )
  }
  return [...merged.values()]
}

function mergeSlices(slices: readonly EndpointSlice[]): EndpointSlice[] {
  return [...new Map(slices.map((slice) => [`${slice.namespace}/${slice.name}`, slice])).values()]
}

function union(a: readonly string[], b: readonly string[]): string[] {
  return [...new Set([...a, ...b])]
}

function blockOf(config: StateAnswer['config'], name: string): Readonly<Record<string, unknown>> {
  const block = config[name]
  return typeof block === 'object' && block !== null ? (block as Readonly<Record<string, unknown>>) : {}
}
