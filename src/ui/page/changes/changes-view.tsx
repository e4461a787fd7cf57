// The changes of the kernel, and the events that caused them.

import { count } from '../../../lib/count.ts'
import { useMemo, useState } from 'preact/hooks'
import type { ChangeEntry } from '../../protocol.ts'
import { serviceId } from '../map/targets.ts'
import { formatRoute } from '../route.ts'
import { usePart, useSnapshot } from '../store.ts'
import { replaceRoute } from '../replace-route.ts'
import { ChangeItem } from './change-item.tsx'
import { filterChanges, foldIdle } from './filter.ts'
import { LatencyStrip } from './latency-strip.tsx'
import { Select } from '../parts/select.tsx'

/** More would make the page slow. */
const SHOWN = 60

export function ChangesView({ query }: { query: Readonly<Record<string, string>> }) {
  const { services, nodes } = useSnapshot()
  const all = usePart((state) => state.changes)
  const [held, setHeld] = useState<readonly ChangeEntry[] | null>(null)
  const filter = { service: query['service'] ?? '', node: query['node'] ?? '' }
  const changes = useMemo(() => filterChanges(held ?? all, filter), [held, all, filter.service, filter.node])
  const choose = (change: Partial<typeof filter>) => replaceRoute(formatRoute('changes', { ...filter, ...change }))
  return (
    <>
      <div class="tools">
        <h1>Changes</h1>
        <Select
          label="Service"
          isLabelHidden
          value={filter.service}
          onChoose={(service) => choose({ service })}
          options={[['', 'all services'], ...services.map(serviceId)]}
        />
        <Select
          label="Node"
          isLabelHidden
          value={filter.node}
          onChoose={(node) => choose({ node })}
          options={[['', 'all nodes'], ...nodes.map(({ name }) => name)]}
        />
        <button type="button" aria-pressed={held !== null} onClick={() => setHeld(held === null ? all : null)}>
          {held === null ? 'Hold' : 'Go on'}
        </button>
        <p class="count" role="status">
          {count(changes.length, 'change')}
          {held !== null && all.length > 0 && ', held'}
        </p>
      </div>
      {changes.length === 0 ? (
        <p class="empty">
          Nothing has changed since this page was opened. Change something - <code>kubectl apply</code>, or the buttons
          of Hands on - and see here what it did to the kernel of each node.
        </p>
      ) : (
        <>
          <LatencyStrip changes={changes} />
          <ol class="changes">
            {foldIdle(changes.slice(0, SHOWN)).map((row) =>
              'id' in row ? <ChangeItem key={row.id} change={row} /> : <Idle key={row[0]!.id} changes={row} />,
            )}
          </ol>
          {changes.length > SHOWN && <p class="muted">{changes.length - SHOWN} older ones are not shown.</p>}
        </>
      )}
    </>
  )
}

function Idle({ changes }: { changes: readonly ChangeEntry[] }) {
  return (
    <li class="change is-idle">
      <details>
        <summary>{count(changes.length, 'sync')} with nothing to do</summary>
        <ol>
          {changes.map((change) => (
            <ChangeItem key={change.id} change={change} />
          ))}
        </ol>
      </details>
    </li>
  )
}
