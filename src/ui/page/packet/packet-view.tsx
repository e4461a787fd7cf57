// One packet: what is predicted for it, and what the kernel does when it is sent.

import { useRef, useState } from 'preact/hooks'
import type { ExplainAnswer } from '../../protocol.ts'
import { explain } from '../connect.ts'
import { shown } from '../parts/async.ts'
import { useAnswer } from '../parts/use-answer.ts'
import { useSnapshot } from '../store.ts'
import { keepDraft, questionOf, startDraft, type Draft } from './draft.ts'
import { PacketAnswer } from './packet-answer.tsx'
import { PacketForm } from './packet-form.tsx'

export function PacketView({ query }: { query: Readonly<Record<string, string>> }) {
  const snapshot = useSnapshot()
  const [draft, setDraft] = useState(() => startDraft(snapshot, query))
  const [answer, askFor] = useAnswer<ExplainAnswer>('')
  const asked = useRef(0)
  const change = (next: Draft) => {
    keepDraft(next)
    setDraft(next)
  }
  const ask = (send: boolean) => {
    asked.current++
    askFor((signal) => explain(questionOf(draft, send), signal))
  }
  const value = shown(answer)
  return (
    <>
      <div class="tools">
        <h1>Packet</h1>
        <p class="muted">
          The first packet of a connection decides for all of it. Choose where it comes from and what it dials.
        </p>
      </div>
      <PacketForm
        draft={draft}
        onDraft={change}
        isBusy={answer.state === 'waiting'}
        onExplain={() => ask(false)}
        onSend={() => ask(true)}
      />
      <div role="status" class="packet-said">
        {answer.state === 'waiting' && <p class="muted">Asking…</p>}
        {answer.state === 'failed' && <p class="error">{answer.error}</p>}
        {answer.state === 'here' && (
          <p class={`headline ${answer.value.explanation.agreement === 'differs' ? 'bad' : ''}`}>
            {answer.value.explanation.headline}
          </p>
        )}
      </div>
      {value !== null && <PacketAnswer key={asked.current} answer={value} />}
    </>
  )
}
