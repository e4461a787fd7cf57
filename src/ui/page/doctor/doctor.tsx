// What doctor finds, asked from the page.

import { count } from '../../../lib/count.ts'
import { useEffect } from 'preact/hooks'
import type { DoctorAnswer, DoctorRequest } from '../../protocol.ts'
import { askDoctor } from '../connect.ts'
import { shown, type Waited } from '../parts/async.ts'
import { Command } from '../parts/command.tsx'
import { useAnswer } from '../parts/use-answer.ts'
import { formatRoute } from '../route.ts'

/** A button, and below it the answer. */
export function DoctorButton({ question, label = 'Ask doctor' }: { question: DoctorRequest; label?: string }) {
  const [answer, ask] = useDoctor(question)
  return (
    <div class="doctor">
      <button type="button" disabled={answer.state === 'waiting'} onClick={ask}>
        {label}
      </button>
      <Found answer={answer} />
    </div>
  )
}

/** Asks at once, about the whole node. */
export function NodeDoctor() {
  const [answer, ask] = useDoctor({})
  useEffect(ask, [])
  return (
    <section class="doctor is-wide" aria-labelledby="doctor">
      <div class="section-head">
        <h2 id="doctor">What doctor finds</h2>
        <button type="button" disabled={answer.state === 'waiting'} onClick={ask}>
          Look again
        </button>
      </div>
      <Found answer={answer} />
    </section>
  )
}

function useDoctor(question: DoctorRequest): readonly [Waited<DoctorAnswer>, () => void] {
  const [answer, ask] = useAnswer<DoctorAnswer>(JSON.stringify(question))
  return [answer, () => ask((signal) => askDoctor(question, signal))]
}

function Found({ answer }: { answer: Waited<DoctorAnswer> }) {
  const value = shown(answer)
  return (
    <div role="status">
      {answer.state === 'waiting' && <p class="muted">Looking …</p>}
      {answer.state === 'failed' && <p class="error">{answer.error}</p>}
      {value !== null && <Diagnosis diagnosis={value} />}
    </div>
  )
}

export function Diagnosis({ diagnosis: { answers, finding, services, command } }: { diagnosis: DoctorAnswer }) {
  const open = answers.filter(({ result }) => result === 'not known')
  return (
    <>
      {finding !== null && (
        <div class="error" data-finding={finding.code}>
          <p>{finding.what}</p>
          {finding.next !== '' && <Command text={finding.next} />}
        </div>
      )}
      {services.length > 0 && (
        <ul class="doctor-services">
          {services.map(({ service, finding: found }) => (
            <li key={service} class="error" data-finding={found.code}>
              <a href={formatRoute('map', { service })}>{service}</a>: {found.what}
            </li>
          ))}
        </ul>
      )}
      {finding === null && services.length === 0 && (
        <p class="yes">
          Nothing is wrong
          {open.length > 0 && `, as far as it could look: ${open.map(({ question }) => question).join(', ')}?`}
        </p>
      )}
      <details>
        <summary>{count(answers.length, 'question')}</summary>
        <ol class="questions">
          {answers.map(({ question, result, detail }) => (
            <li key={question} class={result === 'yes' ? 'yes' : result === 'no' ? 'no' : 'muted'}>
              {question}? {detail}
            </li>
          ))}
        </ol>
        <Command text={command} />
      </details>
    </>
  )
}
