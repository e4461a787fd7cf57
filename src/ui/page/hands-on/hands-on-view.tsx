// All actions on a sandbox, one click each, with the equivalent commands.

import { useState } from 'preact/hooks'
import { Command } from '../parts/command.tsx'
import { useSnapshot } from '../store.ts'
import type { ActProps } from '../act/act-button.tsx'
import { ClientActions } from './client-actions.tsx'
import { ClusterActions } from './cluster-actions.tsx'
import { PodActions } from './pod-actions.tsx'
import { ServiceActions } from './service-actions.tsx'
import { useAct, type Deed } from '../act/use-act.ts'

export function HandsOnView() {
  const { can } = useSnapshot()
  const { deeds, doIt, undo } = useAct()
  const [command, setCommand] = useState('')
  const props: ActProps = { doIt, onShow: setCommand }
  if (!can.act) return <NotHere />
  return (
    <>
      <div class="tools">
        <h1>Hands on</h1>
        <p class="muted">Break it, and watch it mend itself. Each button has a command that does the same.</p>
      </div>
      <div class="hands-on">
        <div class="hands-on-main">
          <ClientActions {...props} />
          <PodActions {...props} />
          <ServiceActions {...props} />
          <ClusterActions {...props} />
        </div>
        <Terminal command={command} deeds={deeds} onUndo={undo} />
      </div>
    </>
  )
}

function NotHere() {
  return (
    <>
      <h1>Hands on</h1>
      <p>This page looks at a real node and changes nothing. In a sandbox there is more to do.</p>
    </>
  )
}

interface TerminalProps {
  readonly command: string
  readonly deeds: readonly Deed[]
  readonly onUndo: (deed: Deed) => void
}

function Terminal({ command, deeds, onUndo }: TerminalProps) {
  const { terminal } = useSnapshot()
  return (
    <section class="terminal" aria-label="The same at a terminal">
      <h2>The same at a terminal</h2>
      {terminal.kubeconfig !== null && <Command text={`export KUBECONFIG=${terminal.kubeconfig}`} />}
      {command === '' ? (
        <p class="muted">Point at a button to see its command.</p>
      ) : (
        <div data-testid="command">
          <Command text={command} />
        </div>
      )}
      <h3>Done so far</h3>
      <ol class="deeds" aria-live="polite">
        {deeds.length === 0 && <li class="muted">Nothing yet.</li>}
        {deeds.map((deed) => (
          <li key={deed.id} class={`deed is-${deed.state}`}>
            <Command text={deed.command} />
            <p class={deed.state === 'failed' ? 'bad' : ''}>{deed.state === 'doing' ? '…' : deed.said}</p>
            {deed.undo !== null && (
              <button type="button" onClick={() => onUndo(deed)}>
                Undo
              </button>
            )}
          </li>
        ))}
      </ol>
    </section>
  )
}
