import { count } from '../../../lib/count.ts'
import { formatCause } from '../changes/change-item.tsx'
import { filterChanges, tookMs } from '../changes/filter.ts'
import { formatMs } from '../rates.ts'
import { formatRoute } from '../route.ts'
import { usePart } from '../store.ts'

const SHOWN = 4

/** The newest changes that did something, a line each. */
export function Latest() {
  const changes = usePart((state) => state.changes)
  const newest = filterChanges(changes, { service: '', node: '' })
    .filter(({ operations, error }) => operations > 0 || error !== undefined)
    .slice(0, SHOWN)
  if (newest.length === 0) return null
  return (
    <section class="latest" aria-labelledby="latest">
      <div class="section-head">
        <h2 id="latest">Latest changes</h2>
        <a class="small" href={formatRoute('changes')}>
          all of them
        </a>
      </div>
      <ul>
        {newest.map((change) => {
          const took = tookMs(change)
          const [object] = change.objects
          return (
            <li key={change.id}>
              <time dateTime={new Date(change.doneMs).toISOString()}>
                {new Date(change.doneMs).toTimeString().slice(0, 8)}
              </time>
              <span>{change.node}</span>
              <span class="latest-what">
                {object === undefined ? formatCause(change) : `${object.kind} ${object.namespace}/${object.name}`}
                {change.family === 6 && ', IPv6'}
              </span>
              <span class="latest-operations">{count(change.operations, 'operation')}</span>
              <span class="number">{took === null ? '' : formatMs(took)}</span>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
