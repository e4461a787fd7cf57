import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ActProps } from '../act/act-button.tsx'
import { useAct } from '../act/use-act.ts'
import { Command } from '../parts/command.tsx'
import { useSnapshot } from '../store.ts'

/** What can be done to the selected thing, with the command that does the same, and what the last action did. */
export function PanelActions({ children }: { children: (props: ActProps) => ComponentChildren }) {
  const { can } = useSnapshot()
  const { doIt } = useAct()
  const [command, setCommand] = useState('')
  if (!can.act) return null
  return (
    <div class="panel-actions">
      {children({ doIt, onShow: setCommand })}
      {command !== '' && (
        <div data-testid="command">
          <Command text={command} />
        </div>
      )}
      <LastDeed />
    </div>
  )
}

/** The last action, and a button that takes it back. */
export function LastDeed() {
  const { deeds, undo } = useAct()
  const last = deeds[0]
  return (
    <p class="last-deed" role="status">
      {last !== undefined && (
        <>
          <span class={last.state === 'failed' ? 'bad' : ''}>{last.state === 'doing' ? '…' : last.said}</span>
          {last.undo !== null && (
            <button type="button" onClick={() => undo(last)}>
              Undo
            </button>
          )}
        </>
      )}
    </p>
  )
}
