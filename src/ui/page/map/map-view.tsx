// The cluster at a glance: what leads where, and what flows now.

import { useMemo, useRef, useState } from 'preact/hooks'
import { useSnapshot } from '../store.ts'
import { useWidth } from '../use-width.ts'
import { planMap } from './layout.ts'
import { Latest } from './latest.tsx'
import { Legend } from './legend.tsx'
import { MapCanvas } from './map-canvas.tsx'
import { MapPanel } from './map-panel.tsx'
import { MapTable } from './map-table.tsx'
import { MapTools } from './map-tools.tsx'
import { filterServices, type MapFilter } from './search.ts'
import { parsePick, parseSelection, type MapQuery } from './selection.ts'
import { planTargets, serviceId } from './targets.ts'

export function MapView({ query }: { query: MapQuery }) {
  const snapshot = useSnapshot()
  const [filter, setFilter] = useState<MapFilter>({ words: '', namespace: '', system: false })
  const [form, setForm] = useState<'map' | 'table'>('map')
  const area = useRef<HTMLDivElement>(null)
  const width = useWidth(area)
  const selection = parseSelection(query)
  const pick = parsePick(query)

  const services = useMemo(() => filterServices(snapshot, filter), [snapshot, filter])
  const isFiltered = filter.words.trim() !== '' || filter.namespace !== ''
  const targets = useMemo(
    () => planTargets(snapshot, services, isFiltered ? 'led' : 'all'),
    [snapshot, services, isFiltered],
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
    <>
      <MapTools filter={filter} onFilter={setFilter} form={form} onForm={setForm} shown={services.length} pick={pick} />
      <div class="map-area">
        <div class="map-main" ref={area}>
          {form === 'table' ? (
            <MapTable services={services} />
          ) : (
            width > 0 && (
              <MapCanvas layout={layout} services={services} targets={targets} selection={selection} pick={pick} />
            )
          )}
          {form === 'map' && <Legend />}
          <Latest />
        </div>
        {selection !== null && <MapPanel selection={selection} />}
      </div>
    </>
  )
}
