// Seven steps for a newcomer. Each acts on the sandbox, and shows the effect.

import { useEffect, useMemo, useState } from 'preact/hooks'
import { ClusterMap } from '../map/cluster-map.tsx'
import { messageOf } from '../../../lib/errors.ts'
import { formatRoute } from '../route.ts'
import { usePart, useSnapshot } from '../store.ts'
import { StepResult } from './step-result.tsx'
import { steps } from './steps.ts'
import { findStage, type Stage } from './tour-state.ts'
import { useTour } from './use-tour.ts'

export function TourView() {
  const snapshot = useSnapshot()
  const tour = useTour()
  const stage = findStage(snapshot)
  const shown = useMemo(
    () => snapshot.services.filter(({ namespace, name }) => `${namespace}/${name}` === stage?.id),
    [snapshot.services, stage?.id],
  )
  return (
    <>
      <div class="tools">
        <h1>Tour</h1>
        <p class="muted">What a Service is, in seven steps. Everything happens for real, in this sandbox.</p>
      </div>
      {stage === null || !snapshot.can.act ? (
        <p class="empty">
          The tour needs a sandbox with a Service that has pods: <code>kube-proxy sandbox</code> without{' '}
          <code>--empty</code>.
        </p>
      ) : (
        <div class="tour">
          <ol class="tour-steps">
            {steps.map(({ title }, i) => (
              <li key={title} class={tour.seen[i] === true ? 'is-seen' : ''}>
                <button type="button" onClick={() => tour.go(i)} {...(i === tour.at ? { 'aria-current': 'step' } : {})}>
                  <span class="tour-number" aria-hidden="true">
                    {tour.seen[i] === true ? '✓' : i + 1}
                  </span>
                  {title}
                  {tour.seen[i] === true && <span class="hidden"> (seen)</span>}
                </button>
              </li>
            ))}
          </ol>
          <div class="tour-main">
            {tour.at < steps.length ? <CurrentStep tour={tour} stage={stage} /> : <TheEnd tour={tour} />}
            <ClusterMap services={shown} which="led" selection={null} />
          </div>
        </div>
      )}
    </>
  )
}

type Tour = ReturnType<typeof useTour>

function CurrentStep({ tour, stage }: { tour: Tour; stage: Stage }) {
  const { at, runs, seen } = tour
  const step = steps[at]!
  const run = runs[at] ?? null
  const isSeen = seen[at] === true
  const seesNow = usePart((state) => state)
  const proves = run !== null && run.state === 'done' && !isSeen && step.isSeen(run, seesNow, stage)
  useEffect(() => {
    if (proves) tour.markSeen(at)
  }, [proves])
  return (
    <section class="tour-step" aria-labelledby="step-title">
      <p class="panel-kind">
        step {at + 1} of {steps.length}
      </p>
      <h2 id="step-title">{step.title}</h2>
      <p data-testid="step-words">{step.words(run?.stage ?? stage)}</p>
      <div class="buttons">
        <button
          type="button"
          class={isSeen ? '' : 'is-main'}
          disabled={run?.state === 'doing'}
          onClick={() => void tour.run(at)}
        >
          {step.button}
        </button>
        <button type="button" class={isSeen ? 'is-main' : ''} onClick={() => tour.go(at + 1)}>
          {isSeen ? 'Next' : 'Skip'}
        </button>
      </div>
      {run !== null && <StepResult key={at} step={step} run={run} stage={stage} />}
      <p class={`lesson${isSeen ? '' : ' is-ahead'}`} role="status">
        {isSeen ? step.lesson : run?.state === 'done' ? 'Watching …' : ''}
      </p>
    </section>
  )
}

function TheEnd({ tour }: { tour: Tour }) {
  const [error, setError] = useState('')
  const tidy = () => {
    tour.tidy().then(
      () => setError(''),
      (reason: unknown) => setError(messageOf(reason)),
    )
  }
  const count = tour.seen.filter(Boolean).length
  return (
    <section class="tour-step" aria-labelledby="step-title">
      <h2 id="step-title">That was the tour</h2>
      <p>
        {count} of {steps.length} steps seen. An address that no interface has leads to pods that come, go and die, and
        clients do not notice: that is the work of the proxy.
      </p>
      <div class="buttons">
        <button type="button" class="is-main" onClick={tidy}>
          Put everything back
        </button>
        <a class="button" href={formatRoute('hands-on')}>
          Try more
        </a>
        <a class="button" href={formatRoute('map')}>
          To the map
        </a>
      </div>
      {error !== '' && <p class="error">{error}</p>}
    </section>
  )
}
