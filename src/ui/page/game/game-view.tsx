// The game: ten planted failures. Find the cause with the page, or with doctor.

import { useEffect, useMemo, useState } from 'preact/hooks'
import type { DoctorAnswer, ExplainAnswer, LoadRequest } from '../../protocol.ts'
import { act, askDoctor, explain } from '../connect.ts'
import { Diagnosis, DoctorButton } from '../doctor/doctor.tsx'
import { ClusterMap } from '../map/cluster-map.tsx'
import { Fares } from '../map/live-bar.tsx'
import { chooseWay, planWay } from '../packet/plan-way.ts'
import { Way } from '../packet/way.tsx'
import { messageOf } from '../../../lib/errors.ts'
import { shown } from '../parts/async.ts'
import { Command } from '../parts/command.tsx'
import { useAnswer } from '../parts/use-answer.ts'
import { formatRoute } from '../route.ts'
import { usePart, useSnapshot } from '../store.ts'
import { levels, questionOf, type Level } from './levels.ts'
import { addWrong, begin, scoreOf, solve, takeHint, totalOf, type Game } from './game-state.ts'

/** Kept while another view is open. */
let kept: Game = begin()

export function GameView() {
  const { can, services } = useSnapshot()
  const [game, setGame] = useState(kept)
  const [error, setError] = useState('')
  const shown = useMemo(
    () => services.filter(({ namespace, name }) => `${namespace}/${name}` === 'default/whoami'),
    [services],
  )
  const set = (next: Game) => setGame((kept = next))
  const go = (at: number) => {
    act({ action: 'plant', failure: levels[at]?.failure ?? 'none' }).then(
      (answer) => {
        setError(answer.ok ? '' : answer.error)
        if (answer.ok) set({ ...kept, at })
      },
      (reason: unknown) => setError(messageOf(reason)),
    )
  }
  const level = game.at === null ? undefined : levels[game.at]
  return (
    <>
      <div class="tools">
        <h1>Game</h1>
        <p class="muted">A broken cluster: ten failures, each harder than the one before. What is the cause?</p>
        <p class="count" role="status" data-testid="score">
          {totalOf(game)} points
        </p>
      </div>
      {!can.act ? (
        <p class="empty">The game needs a sandbox.</p>
      ) : (
        <div class="game">
          <div class="game-main">
            {error !== '' && <p class="error">{error}</p>}
            {game.at === null ? (
              <Start onStart={() => go(0)} />
            ) : level === undefined ? (
              <End game={game} onAgain={() => set(begin())} />
            ) : (
              <CurrentLevel
                key={game.at}
                level={level}
                at={game.at}
                game={game}
                onHint={() => set(takeHint(game))}
                onGuess={(guess) => set(guess === level.failure ? solve(game) : addWrong(game))}
                onNext={() => go(game.at! + 1)}
                onEnd={() => go(levels.length)}
              />
            )}
          </div>
          <ClusterMap services={shown} which="led" selection={null} />
        </div>
      )}
    </>
  )
}

function Start({ onStart }: { onStart: () => void }) {
  return (
    <section class="tour-step">
      <h2>Find the cause</h2>
      <p>
        Somebody breaks the Service whoami, and its client begins to fail. Look at the map, explain a packet, ask doctor
        - and choose the cause. A failure is worth 100 points; the hint costs 30, a wrong answer 20.
      </p>
      <div class="buttons">
        <button type="button" class="is-main" onClick={onStart}>
          Break it
        </button>
      </div>
    </section>
  )
}

interface LevelProps {
  readonly level: Level
  readonly at: number
  readonly game: Game
  readonly onHint: () => void
  readonly onGuess: (failure: string) => void
  readonly onNext: () => void
  readonly onEnd: () => void
}

function CurrentLevel({ level, at, game, onHint, onGuess, onNext, onEnd }: LevelProps) {
  const { load: request } = useSnapshot()
  const load = usePart((state) => state.load)
  const { hasHint, wrong, isSolved } = scoreOf(game, at)
  const causes = useMemo(
    () => levels.map(({ failure, cause }) => ({ failure, cause })).sort((a, b) => (a.cause < b.cause ? -1 : 1)),
    [],
  )
  return (
    <section class="tour-step" aria-labelledby="level">
      <p class="panel-kind">
        failure {at + 1} of {levels.length}
      </p>
      <h2 id="level">{level.symptom}</h2>
      {load?.running === true && (
        <p>
          The client: <Fares load={load} />
        </p>
      )}
      {isSolved ? (
        <Solution level={level} load={request} onNext={onNext} />
      ) : (
        <>
          <DoctorButton question={questionOf(request)} />
          <p class="panel-links">
            <a class="button" href={formatRoute('packet', packetOf(request))}>
              Explain a packet
            </a>
            <a class="button" href={formatRoute('service', { service: 'default/whoami' })}>
              Look at the Service
            </a>
            {!hasHint && (
              <button type="button" onClick={onHint}>
                A hint
              </button>
            )}
          </p>
          {hasHint && <p class="lesson">{level.hint}</p>}
          <h3>What is the cause?</h3>
          <ul class="causes">
            {causes.map(({ failure, cause }) => (
              <li key={failure}>
                <button type="button" onClick={() => onGuess(failure)}>
                  {cause}
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
      <p role="status">{!isSolved && wrong > 0 && `Not that. ${wrong} wrong so far.`}</p>
      {!isSolved && (
        <button type="button" onClick={onEnd}>
          Mend it and end
        </button>
      )}
    </section>
  )
}

/** What doctor says of it, and the packet's way, while it is still broken. */
function Solution({ level, load, onNext }: { level: Level; load: LoadRequest | null; onNext: () => void }) {
  const [doctor, askForDoctor] = useAnswer<DoctorAnswer>('')
  const [explanation, askToExplain] = useAnswer<ExplainAnswer>('')
  useEffect(() => {
    const { from = 'outside', via = 'clusterIP' } = load ?? {}
    askForDoctor((signal) => askDoctor(questionOf(load), signal))
    askToExplain((signal) => explain({ from, to: 'default/whoami', via }, signal))
  }, [])
  const [found, explained] = [shown(doctor), shown(explanation)]
  const way = explained === null ? null : planWay(explained.explanation, chooseWay(explained.explanation))
  return (
    <div class="step-result">
      <p class="lesson">
        <b>{level.cause}.</b> {level.lesson}
      </p>
      <Command text={level.command} />
      <div class="buttons">
        <button type="button" class="is-main" onClick={onNext}>
          Mend it, and the next
        </button>
      </div>
      {[doctor, explanation].map(
        (answer, i) =>
          answer.state === 'failed' && (
            <p key={i} class="error">
              {answer.error}
            </p>
          ),
      )}
      {found !== null && (
        <>
          <h3>Doctor</h3>
          <Diagnosis diagnosis={found} />
        </>
      )}
      {explained !== null && (
        <>
          <h3>The packet’s way</h3>
          <p>{explained.explanation.headline}</p>
          {way !== null && <Way way={way} question={explained.explanation.question} wasSent={false} />}
        </>
      )}
    </div>
  )
}

function End({ game, onAgain }: { game: Game; onAgain: () => void }) {
  return (
    <section class="tour-step">
      <h2>
        {totalOf(game)} of {levels.length * 100} points
      </h2>
      <p>All is mended, and the client is answered again.</p>
      <div class="buttons">
        <button type="button" class="is-main" onClick={onAgain}>
          Play again
        </button>
        <a class="button" href={formatRoute('map')}>
          To the map
        </a>
      </div>
    </section>
  )
}

function packetOf(load: LoadRequest | null): Record<string, string> {
  const { from = 'outside' } = load ?? {}
  return from === 'outside' ? { from, to: 'default/whoami' } : { from: 'node', node: from, to: 'default/whoami' }
}
