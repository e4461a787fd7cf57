// The failures of the game, as they are planted in the example of a sandbox, and taken out again.

import type { Planted } from '../../../../src/ui/protocol.ts'
import type { LoadRequest } from '../../../../src/ui/protocol.ts'
import { AskedWrongly } from '../../../../src/ui/source.ts'
import type { ServiceSpec } from '../apiserver/objects/service.ts'
import { failAnnotation, readyAnnotation } from '../apiserver/objects/pod-annotations.ts'
import { pods, services } from '../apiserver/resources/table.ts'
import type { FailureMode } from '../controllers/pod-runtime.ts'
import { whoamiDeployment, whoamiService } from '../example.ts'
import type { NodeNetwork } from '../netns/cluster-network.ts'
import type { Sandbox } from '../sandbox.ts'
import { runIn } from './run-in.ts'

export interface Plant {
  /** How the client asks that notices it. */
  readonly load: LoadRequest
  mend(): Promise<void>
}

type Spec = ServiceSpec & Record<string, unknown>
const place = whoamiService.metadata
const LOAD: LoadRequest = { from: 'outside', to: 'default/whoami', perSecond: 10 }

export async function plantFailure(sandbox: Sandbox, failure: Exclude<Planted, 'none'>): Promise<Plant> {
  const { registry, network } = sandbox
  if (registry.find(services, place) === undefined || ownPods(sandbox).length < 2) {
    throw new AskedWrongly('Cannot plant a failure: the example, Service whoami with two pods, is not there')
  }
  const [first, second] = network.nodes as [NodeNetwork, NodeNetwork | undefined]
  if (second === undefined) throw new AskedWrongly('Cannot plant a failure: the game needs two nodes')
  switch (failure) {
    case 'selector-matches-nothing':
      return plant(patchSpec(sandbox, { selector: { app: 'whoarni' } }))
    case 'target-port-name': {
      const [port] = registry.find(services, place)?.object.spec.ports ?? []
      return plant(patchSpec(sandbox, { ports: [{ ...port!, targetPort: 'web' }] }))
    }
    case 'endpoint-refuses':
      return plant(fail(sandbox, 'refuse'))
    case 'endpoint-silent':
      return plant(fail(sandbox, 'hang'))
    case 'pods-not-ready':
      return plant(annotate(sandbox, ownPods(sandbox), readyAnnotation, 'false'))
    case 'internal-policy-local': {
      const { name } = second.plan
      const there = ownPods(sandbox, name)
      const mends = [
        annotate(sandbox, there, readyAnnotation, 'false'),
        patchSpec(sandbox, { internalTrafficPolicy: 'Local' }),
      ]
      return plant(() => mends.forEach((mend) => mend()), { from: name })
    }
    case 'source-not-allowed':
      return plant(patchSpec(sandbox, { loadBalancerSourceRanges: ['192.0.2.0/24'] }), { via: 'loadBalancerIP' })
    case 'foreign-rule':
      await runIn(first.netns, [
        'nft',
        'table inet office { chain forward { type filter hook forward priority 0; tcp dport 3000 drop; }; }',
      ])
      return plant(() => runIn(first.netns, ['nft', 'delete table inet office']))
    case 'forwarding-off':
      first.netns.setSysctls({ 'ipv4/ip_forward': 0 })
      return plant(() => first.netns.setSysctls({ 'ipv4/ip_forward': 1 }))
    case 'no-route': {
      const [range = ''] = second.plan.podRanges
      const half = `${range.split('/')[0]}/25`
      await runIn(first.netns, ['ip', 'route', 'add', 'blackhole', half])
      return plant(() => runIn(first.netns, ['ip', 'route', 'del', 'blackhole', half]))
    }
  }
}

function plant(mend: () => void | Promise<void>, load: Partial<LoadRequest> = {}): Plant {
  return { load: { ...LOAD, ...load }, mend: async () => mend() }
}

function patchSpec({ registry }: Sandbox, fields: Partial<ServiceSpec>): () => void {
  const before = registry.find(services, place)!.object.spec as Spec
  const names = Object.keys(fields)
  const kept = Object.fromEntries(names.map((name) => [name, structuredClone(before[name])]))
  registry.modify(services, place, ({ spec }) => void Object.assign(spec, fields))
  return () =>
    void registry.modify(services, place, ({ spec }) => {
      for (const name of names) {
        if (kept[name] === undefined) delete (spec as Spec)[name]
        else (spec as Spec)[name] = kept[name]
      }
    })
}

function fail(sandbox: Sandbox, how: FailureMode): () => void {
  return annotate(sandbox, ownPods(sandbox).slice(0, 1), failAnnotation, how)
}

function annotate({ registry }: Sandbox, names: readonly string[], annotation: string, value: string): () => void {
  const set = (to: string | undefined) => {
    for (const name of names) {
      registry.modify(pods, { namespace: place.namespace, name }, ({ metadata }) => {
        const { [annotation]: _, ...others } = metadata.annotations ?? {}
        metadata.annotations = to === undefined ? others : { ...others, [annotation]: to }
      })
    }
  }
  set(value)
  return () => set(undefined)
}

/** Of the example, on one node or on all. */
function ownPods({ registry }: Sandbox, node?: string): string[] {
  const { app } = whoamiDeployment.spec.selector.matchLabels
  return registry
    .collection(pods)
    .list()
    .map(({ object }) => object)
    .filter(({ metadata, spec }) => metadata.labels?.['app'] === app && (node === undefined || spec.nodeName === node))
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
}
