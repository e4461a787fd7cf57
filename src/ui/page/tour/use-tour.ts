import { useState } from 'preact/hooks'
import type { ActAnswer, Action, ExplainAnswer } from '../../protocol.ts'
import { act, explain } from '../connect.ts'
import { messageOf } from '../../../lib/errors.ts'
import { useStore } from '../store.ts'
import { steps, tidyUp } from './steps.ts'
import { findStage, takeBaseline, type Run } from './tour-state.ts'

interface Tour {
  readonly at: number
  readonly runs: readonly (Run | null)[]
  readonly seen: readonly boolean[]
  /** The deployment's replicas before the tour. */
  readonly replicas: number | null
}

const fresh: Tour = { at: 0, runs: steps.map(() => null), seen: steps.map(() => false), replicas: null }

/** Kept while another view is open. */
let kept: Tour = fresh

export function useTour() {
  const store = useStore()
  const [tour, setTour] = useState(kept)
  const set = (change: (tour: Tour) => Tour) => setTour((before) => (kept = change(before)))
  const setRun = (index: number, run: Run) =>
    set((before) => ({ ...before, runs: before.runs.map((each, i) => (i === index ? run : each)) }))

  /** Runs the actions of a step. */
  const run = async (index: number) => {
    const step = steps[index]!
    const stage = findStage(store.state.snapshot)
    if (stage === null) return
    set((before) => ({
      ...before,
      seen: before.seen.map((each, i) => (i === index ? false : each)),
      replicas: before.replicas ?? stage.deployment?.replicas ?? null,
    }))
    const baseline = takeBaseline(store.state)
    const begun: Run = { stage, baseline, state: 'doing', answers: [], explained: null, error: null }
    setRun(index, begun)
    try {
      const answers = await doAll(step.actions(stage, store.state.snapshot))
      const packet = step.packet?.(stage)
      const explained: ExplainAnswer | null =
        packet === undefined ? null : await explain({ ...packet, node: stage.node, send: true })
      const failed = answers.find((answer) => !answer.ok)
      setRun(index, {
        ...begun,
        state: failed === undefined ? 'done' : 'failed',
        answers,
        explained,
        error: failed?.ok === false ? failed.error : null,
      })
    } catch (error) {
      setRun(index, { ...begun, state: 'failed', error: messageOf(error) })
    }
  }
  const tidy = async () => {
    const { snapshot } = store.state
    const stage = findStage(snapshot)
    if (stage !== null) await doAll(tidyUp(snapshot, stage, tour.replicas ?? stage.deployment?.replicas ?? 0))
    set(() => fresh)
  }
  return {
    ...tour,
    run,
    tidy,
    go: (at: number) => set((before) => ({ ...before, at: Math.min(steps.length, Math.max(0, at)) })),
    markSeen: (index: number) =>
      set((before) => ({ ...before, seen: before.seen.map((each, i) => each || i === index) })),
  }
}

async function doAll(actions: readonly Action[]): Promise<ActAnswer[]> {
  const answers: ActAnswer[] = []
  for (const action of actions) answers.push(await act(action))
  return answers
}
