// The map of some services, as wide as there is room. Boxes are links, so that a keyboard reaches them. Lines are drawn again with each
// traffic report, boxes are not.

import { useMemo, useRef, useState } from 'preact/hooks'
import { metByTarget, failureWords } from './failures.ts'
import { groupTargets } from './groups.ts'
import { ejections, podState } from './pod-state.ts'
import type { ServiceInfo } from '../../protocol.ts'
import { usePart, useSnapshot } from '../store.ts'
import { useWidth } from '../use-width.ts'
import { planMap } from './layout.ts'
import { planEdges } from './edges.ts'
import { Lines } from './lines.tsx'
import { NodeFrames, PodBoxes } from './node-boxes.tsx'
import { OutsideBox } from './outside-box.tsx'
import type { Selection } from './selection.ts'
import { ServiceBoxes } from './service-boxes.tsx'
import { planTargets, serviceId, targetOf } from './targets.ts'
import { useZoom, ZoomButtons } from './zoom.tsx'

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
  const [hovered, setHovered] = useState<string | null>(null)
  const zoom = useZoom(layout)
  const lit = useMemo(() => litServices(services, hovered, selection), [services, hovered, selection])
  const edges = useMemo(() => planEdges(services, layout, lit ?? new Set(), groupOf), [services, layout, lit, groupOf])
  const litTargets = useMemo(() => (lit === null ? null : targetsOf(services, lit, groupOf)), [services, lit, groupOf])
  return (
    <div ref={area}>
      {width > 0 && (
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
