import { count } from '../../../lib/count.ts'
import { useSnapshot } from '../store.ts'
import { formatRoute } from '../route.ts'
import { Select } from '../parts/select.tsx'
import { leftOutWords } from './left-out.ts'
import type { MapFilter } from './search.ts'

interface Props {
  readonly filter: MapFilter
  readonly onFilter: (filter: MapFilter) => void
  readonly form: 'map' | 'table'
  readonly onForm: (form: 'map' | 'table') => void
  readonly shown: number
  readonly pick: 'from' | 'to' | null
}

export function MapTools({ filter, onFilter, form, onForm, shown, pick }: Props) {
  const { services, leftOut } = useSnapshot()
  const namespaces = [...new Set(services.filter(({ system }) => !system).map(({ namespace }) => namespace))].sort()
  const all = services.filter(({ system }) => filter.system || !system).length
  return (
    <>
      <div class="tools">
        <h1>Map</h1>
        <label class="search">
          <span class="hidden">Find services by name, address, port or pod</span>
          <input
            type="search"
            placeholder="Find a name, an address, a port"
            value={filter.words}
            onInput={(event) => onFilter({ ...filter, words: event.currentTarget.value })}
          />
        </label>
        {namespaces.length > 1 && (
          <Select
            label="Namespace"
            isLabelHidden
            value={filter.namespace}
            onChoose={(namespace) => onFilter({ ...filter, namespace })}
            options={[['', 'all namespaces'], ...namespaces]}
          />
        )}
        <label class="check">
          <input
            type="checkbox"
            checked={filter.system}
            onChange={(event) => onFilter({ ...filter, system: event.currentTarget.checked })}
          />
          show system services
        </label>
        <div class="switch" role="group" aria-label="Shown as">
          {(['map', 'table'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={form === each} onClick={() => onForm(each)}>
              {each === 'map' ? 'Map' : 'Table'}
            </button>
          ))}
        </div>
        <p class="count" role="status">
          {shown === all ? '' : `${shown} of `}
          {count(all, 'service')}
        </p>
      </div>
      {leftOutWords(leftOut) !== '' && <p class="notice">{leftOutWords(leftOut)}</p>}
      {pick !== null && (
        <p class="notice" role="status">
          {pick === 'from'
            ? 'Click on a pod, a node or the machine: the packet comes from there.'
            : 'Click on a service: the packet goes there.'}{' '}
          <a href={formatRoute('packet')}>Back to the packet</a>
        </p>
      )}
    </>
  )
}
