// Draws the hooks one after the other, as the packet passes them.

import { useEffect, useState } from 'preact/hooks'
import type { Explanation } from '../../../diagnose/explain/explanation.ts'
import { joinHostPort } from '../../../lib/ip.ts'
import type { Band, WayPlan } from './plan-way.ts'

const STEP_MS = 450

interface Props {
  readonly way: WayPlan
  readonly question: Explanation['question']
  readonly wasSent: boolean
}

export function Way({ way, question, wasSent }: Props) {
  const last = way.bands.length + 2
  const [at, setAt] = useState(() => (wasSent && !prefersStill() ? 0 : last))
  useEffect(() => {
    if (at >= last) return
    const timer = setTimeout(() => setAt(at + 1), STEP_MS)
    return () => clearTimeout(timer)
  }, [at, last])
  const state = (step: number) => (at < step ? 'is-ahead' : at === step && at < last ? 'is-here' : '')
  return (
    <>
      {wasSent && (
        <p class="way-heads" aria-hidden="true">
          <span>predicted: the rule that takes it</span>
          <span>traced: what the kernel did there</span>
        </p>
      )}
      <ol class="way">
        <li class="way-start">
          <b>{question.from}</b> {question.from.includes(question.source) ? '' : <code>{question.source}</code>} dials{' '}
          <code>
            {joinHostPort(question.destination, question.port)}/{question.protocol}
          </code>
        </li>
        {way.bands.map((band, i) => (
          <li key={i} class={`way-band ${state(i + 1)}`} data-hook={band.hook}>
            <BandSteps band={band} wasSent={wasSent} />
          </li>
        ))}
        <li class={`way-end ${way.isGood ? 'is-good' : 'is-bad'} ${state(way.bands.length + 1)}`}>
          The packet <b>{way.end}</b>
        </li>
        {way.back.length > 0 && (
          <li class={`way-back ${state(last)}`}>
            <h3>The way back</h3>
            <ol>
              {way.back.map((line) => (
                <li key={line}>{line}</li>
              ))}
            </ol>
          </li>
        )}
      </ol>
      {wasSent && (
        <button type="button" class="again" disabled={at < last} onClick={() => setAt(0)}>
          Watch it again
        </button>
      )}
    </>
  )
}

function prefersStill(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}

function BandSteps({ band, wasSent }: { band: Band; wasSent: boolean }) {
  return (
    <>
      <h3>{band.hook}</h3>
      <ul class="steps">
        {band.steps.map(({ place, rule, comment, found, translation, traced }, i) => (
          <li key={i} class={translation === null ? '' : 'is-turn'}>
            <div class="step-rule">
              <span class="place">{place}</span>
              <code>{rule}</code>
              {comment !== null && <span class="comment"># {comment}</span>}
              {found.map((each) => (
                <code key={each} class="found">
                  {each}
                </code>
              ))}
              {translation !== null && <b class="translation">{translation}</b>}
            </div>
            {wasSent && (
              <div class={traced === null ? 'step-trace small' : 'step-trace yes'}>
                {traced === null ? 'not in the trace' : traced}
              </div>
            )}
          </li>
        ))}
      </ul>
      {band.traced.length > 0 && (
        <details class="trace" open={band.traced.length <= 3}>
          <summary>the trace also showed {band.traced.length === 1 ? 'a line' : `${band.traced.length} lines`}</summary>
          <ul>
            {band.traced.map((line, i) => (
              <li key={i}>
                <code>{line}</code>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}
