// The map of some services, as wide as there is room.

import { useMemo, useRef } from 'preact/hooks'
import { metByTarget, failureWords } from './failures.ts'
import { groupTargets } from './groups.ts'
import { ejections, podState } from './pod-state.ts'
import type { ServiceInfo } from '../../protocol.ts'
import { usePart, useSnapshot } from '../store.ts'
import { useWidth } from '../use-width.ts'
import { planMap } from './layout.ts'
import { MapCanvas } from './map-canvas.tsx'
import type { Selection } from './selection.ts'
import { planTargets, serviceId } from './targets.ts'

interface Props {
  readonly services: readonly ServiceInfo[]
  /** Whether pods that no service leads to are drawn, too. */
  readonly which: 'all' | 'led'
  readonly selection: Selection | null
  readonly pick?: 'from' | 'to' | null
}

export function ClusterMap({ services, which, selection, pick = null }: Props) {
  const snapshot = useSnapshot()
  const area = useRef<HTMLDivElement>(null)
  const width = useWidth(area)
  const all = useMemo(() => planTargets(snapshot, services, which), [snapshot, services, which])
  const counts = useMemo(() => countByNode(all), [all])
  const ejected = useMemo(() => ejections(services), [services])
  const failing = useFailing(services)
  const selected = selection?.kind === 'pod' ? selection.id : null
  const { targets, groupOf } = useMemo(
    () =>
      groupTargets(all, (target) => podState(target, ejected.get(target.id) ?? [], failing.get(target.id)), selected),
    [all, ejected, failing, selected],
  )
  // Boxes move only when something is added or removed, not with each snapshot.
  const key = JSON.stringify([
    width,
    snapshot.nodes.map(({ name }) => name),
    services.map(serviceId),
    targets.map(({ id, node }) => [id, node]),
  ])
  const layout = useMemo(
    () =>
      planMap({
        width,
        services,
        targets,
        nodes: snapshot.nodes.map(({ name }) => name),
        hasOutside: snapshot.outside !== null,
      }),
    [key],
  )
  return (
    <div ref={area}>
      {width > 0 && (
        <MapCanvas
          layout={layout}
          services={services}
          targets={targets}
          groupOf={groupOf}
          counts={counts}
          ejected={ejected}
          failing={failing}
          selection={selection}
          pick={pick}
        />
      )}
    </div>
  )
}

/** Texts by pod. The same object as long as the texts are the same, so that boxes are not drawn again. */
function useFailing(services: readonly ServiceInfo[]): ReadonlyMap<string, string> {
  const now = usePart((state) => state.flow.now)
  const words = [...metByTarget(services, now)]
    .map(([id, met]) => [id, failureWords(met)] as const)
    .filter(([, text]) => text !== '')
  return useMemo(() => new Map(words), [JSON.stringify(words)])
}

function countByNode(targets: readonly { readonly node: string }[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const { node } of targets) counts.set(node, (counts.get(node) ?? 0) + 1)
  return counts
}
