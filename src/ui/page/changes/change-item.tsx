import { count } from '../../../lib/count.ts'
import type { ChangedObject } from '../../../serve/control/changes.ts'
import type { ChangeEntry } from '../../protocol.ts'
import { memo } from '../memo.ts'
import { formatBytes, formatMs } from '../rates.ts'
import { ejectedIn, signOf, tookMs } from './filter.ts'

/** The cause of a change for which no object is named. */
export function formatCause(change: ChangeEntry): string {
  const { why, ports, operations, commands } = change
  switch (why) {
    case 'event':
      return 'from the API'
    case 'compare':
      // Only the first sync of a proxy plans every port, or makes the table.
      return operations > 0 && (ports.length > 0 || commands.some((line) => line.startsWith('add table ')))
        ? 'first sync: everything was written'
        : 'full sync: everything was compared with the kernel'
    case 'heal':
      return 'another program had changed the rules'
    case 'eject':
      return formatEjection(change)
    case 'balance':
      return 'shares moved, by open connections'
  }
}

function formatEjection(change: ChangeEntry): string {
  const { ejected, back } = ejectedIn(change)
  const parts = [
    ejected.length > 0 ? `ejected ${ejected.join(', ')}: does not answer` : '',
    back.length > 0 ? `${back.join(', ')} is back` : '',
  ].filter(Boolean)
  return parts.length > 0 ? parts.join('; ') : 'endpoints were ejected, or are back'
}

export const ChangeItem = memo(({ change }: { change: ChangeEntry }) => {
  const took = tookMs(change)
  return (
    <li class={`change is-${change.why}${change.error === undefined ? '' : ' is-failed'}`} data-change={change.id}>
      <div class="change-head">
        <time dateTime={new Date(change.doneMs).toISOString()}>{formatTime(change.doneMs)}</time>
        <span class="tag">{change.node}</span>
        {change.family === 6 && <span class="tag">IPv6</span>}
        <Cause change={change} />
        <span class="figures">
          {took !== null && (
            <span>
              <b>{formatMs(took)}</b> from event to acknowledgement
            </span>
          )}
          <span>
            {change.operations === 0
              ? 'nothing to do'
              : `${count(change.operations, 'operation')}, ${formatBytes(change.bytes)}`}
          </span>
        </span>
      </div>
      {change.error !== undefined && <p class="error">The kernel refused it: {change.error}</p>}
      {change.commands.length > 0 && <Difference change={change} />}
    </li>
  )
})

function Cause({ change }: { change: ChangeEntry }) {
  const { objects, moreObjects, ports, morePorts } = change
  return (
    <span class="cause">
      {objects.length === 0 ? (
        formatCause(change)
      ) : (
        <>
          {objects.slice(0, 3).map((each, i) => (
            <span key={i}>
              {i > 0 && ', '}
              <ChangedName of={each} />
            </span>
          ))}
          {objects.length + moreObjects > 3 && `, and ${objects.length + moreObjects - 3} more`}
        </>
      )}
      {ports.length > 0 && (
        <span class="small">
          {' '}
          → {ports.slice(0, 3).join(', ')}
          {ports.length + morePorts > 3 && ` and ${ports.length + morePorts - 3} more`}
        </span>
      )}
    </span>
  )
}

function ChangedName({ of: { kind, namespace, name, verb } }: { of: ChangedObject }) {
  return (
    <>
      {kind} <b>{namespace === '' ? name : `${namespace}/${name}`}</b>
      {verb === 'deleted' && ' deleted'}
    </>
  )
}

/** Short ones are shown at once. */
const AT_ONCE = 8

function Difference({ change: { commands, moreCommands, mode } }: { change: ChangeEntry }) {
  const lines = commands.length + moreCommands
  return (
    <details open={lines <= AT_ONCE}>
      <summary>
        {count(lines, 'line')} of {mode}
      </summary>
      <pre tabIndex={0} role="group" aria-label="The difference">
        {commands.map((line, i) => (
          <code key={i} class={`line is-${signOf(line)}`}>
            {line}
          </code>
        ))}
        {moreCommands > 0 && <code class="line muted">… {moreCommands} more</code>}
      </pre>
    </details>
  )
}

function formatTime(ms: number): string {
  const date = new Date(ms)
  const two = (value: number) => String(value).padStart(2, '0')
  const millis = String(date.getMilliseconds()).padStart(3, '0')
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${millis}`
}
