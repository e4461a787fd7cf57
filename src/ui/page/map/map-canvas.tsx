// The map. Boxes are links, so that a keyboard reaches them. Lines are drawn again with each traffic report, boxes are not.

import { useMemo, useState } from 'preact/hooks'
import type { ServiceInfo } from '../../protocol.ts'
import { planEdges } from './edges.ts'
import type { MapLayout } from './layout.ts'
import { Lines } from './lines.tsx'
import { NodeFrames, PodBoxes } from './node-boxes.tsx'
import { OutsideBox } from './outside-box.tsx'
import type { Selection } from './selection.ts'
import { ServiceBoxes } from './service-boxes.tsx'
import { serviceId, targetOf, type Target } from './targets.ts'
import { useZoom, ZoomButtons } from './zoom.tsx'

interface Props {
  readonly layout: MapLayout
  readonly services: readonly ServiceInfo[]
  readonly targets: readonly Target[]
  /** The group that a pod is drawn in. */
  readonly groupOf: ReadonlyMap<string, string>
  /** Pods by node. */
  readonly counts: ReadonlyMap<string, number>
  readonly ejected: ReadonlyMap<string, readonly string[]>
  /** What happens to connections of clients in a pod, as text. */
  readonly failing: ReadonlyMap<string, string>
  readonly selection: Selection | null
  readonly pick: 'from' | 'to' | null
}

export function MapCanvas({ layout, services, targets, groupOf, counts, ejected, failing, selection, pick }: Props) {
  const [hovered, setHovered] = useState<string | null>(null)
  const zoom = useZoom(layout)
  const lit = useMemo(() => litServices(services, hovered, selection), [services, hovered, selection])
  const edges = useMemo(() => planEdges(services, layout, lit ?? new Set(), groupOf), [services, layout, lit, groupOf])
  const litTargets = useMemo(() => (lit === null ? null : targetsOf(services, lit, groupOf)), [services, lit, groupOf])
  return (
    <div class="map-frame">
      <svg
        class="map"
        role="group"
        aria-label="Map of the cluster"
        width={layout.width}
        height={layout.height}
        viewBox={zoom.viewBox}
        ref={zoom.ref}
      >
        <NodeFrames layout={layout} counts={counts} selection={selection} pick={pick} />
        <Lines edges={edges} layout={layout} services={services} lit={lit} />
        {layout.outside !== null && <OutsideBox box={layout.outside} pick={pick} selection={selection} />}
        <ServiceBoxes
          layout={layout}
          services={services}
          lit={lit}
          selection={selection}
          pick={pick}
          onHover={setHovered}
        />
        <PodBoxes
          layout={layout}
          targets={targets}
          ejected={ejected}
          failing={failing}
          lit={litTargets}
          selection={selection}
          pick={pick}
        />
      </svg>
      <ZoomButtons zoom={zoom} />
    </div>
  )
}

/** The highlighted services; null: none. */
function litServices(
  services: readonly ServiceInfo[],
  hovered: string | null,
  selection: Selection | null,
): ReadonlySet<string> | null {
  if (hovered !== null) return new Set([hovered])
  if (selection?.kind === 'service') return new Set([selection.id])
  if (selection?.kind !== 'pod') return null
  const leading = services.filter(({ ports }) =>
    ports.some(({ backends }) => backends.some((backend) => targetOf(backend) === selection.id)),
  )
  return new Set(leading.map(serviceId))
}

function targetsOf(
  services: readonly ServiceInfo[],
  lit: ReadonlySet<string>,
  groupOf: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const shown = services.filter((service) => lit.has(serviceId(service)))
  const pods = shown.flatMap(({ ports }) => ports.flatMap(({ backends }) => backends.map(targetOf)))
  return new Set(pods.map((pod) => groupOf.get(pod) ?? pod))
}
