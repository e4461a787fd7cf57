// The map of some services, as wide as there is room.

import { useMemo, useRef } from 'preact/hooks'
import type { ServiceInfo } from '../../protocol.ts'
import { useSnapshot } from '../store.ts'
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
  const targets = useMemo(() => planTargets(snapshot, services, which), [snapshot, services, which])
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
        <MapCanvas layout={layout} services={services} targets={targets} selection={selection} pick={pick} />
      )}
    </div>
  )
}
