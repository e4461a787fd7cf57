// The cluster at a glance: what leads where, and what flows now.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useSnapshot } from '../store.ts'
import { ClusterMap } from './cluster-map.tsx'
import { Latest } from './latest.tsx'
import { Charts } from '../charts/charts.tsx'
import { NodeDoctor } from '../doctor/doctor.tsx'
import { LiveBar } from './live-bar.tsx'
import { Legend } from './legend.tsx'
import { MapPanel } from './map-panel.tsx'
import { MapTable } from './map-table.tsx'
import { MapTools } from './map-tools.tsx'
import { filterServices, type MapFilter } from './search.ts'
import { parsePick, parseSelection, type MapQuery } from './selection.ts'

export function MapView({ query }: { query: MapQuery }) {
  const snapshot = useSnapshot()
  const [filter, setFilter] = useState<MapFilter>({ words: '', namespace: '', system: false })
  const [form, setForm] = useState<'map' | 'table'>('map')
  const area = useRef<HTMLDivElement>(null)
  const selection = parseSelection(query)
  const pick = parsePick(query)

  useEffect(() => {
    // In a narrow window the panel is below the map: both are seen from the top of the map on.
    if (selection !== null && matchMedia('(width <= 900px)').matches) area.current?.scrollIntoView({ block: 'start' })
  }, [selection?.id])

  const services = useMemo(() => filterServices(snapshot, filter), [snapshot, filter])
  const isFiltered = filter.words.trim() !== '' || filter.namespace !== ''
  return (
    <>
      <MapTools filter={filter} onFilter={setFilter} form={form} onForm={setForm} shown={services.length} pick={pick} />
      {snapshot.kind === 'node' && <NodeDoctor />}
      <LiveBar hasPanel={selection !== null} />
      <div class="map-area">
        <div class="map-main" ref={area}>
          {form === 'table' ? (
            <MapTable services={services} />
          ) : (
            <ClusterMap services={services} which={isFiltered ? 'led' : 'all'} selection={selection} pick={pick} />
          )}
          {form === 'map' && <Legend />}
          <Charts selected={selection?.kind === 'service' ? selection.id : ''} />
          <Latest />
        </div>
        {selection !== null && <MapPanel selection={selection} />}
      </div>
    </>
  )
}
