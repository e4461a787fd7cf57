import { count } from '../../../lib/count.ts'
import type { ChangeEntry } from '../../protocol.ts'
import { ChangeItem } from '../changes/change-item.tsx'
import { tookMs } from '../changes/filter.ts'
import { LoadFigures } from '../hands-on/client-actions.tsx'
import { Way } from '../packet/way.tsx'
import { chooseWay, planWay } from '../packet/plan-way.ts'
import { Command } from '../parts/command.tsx'
import { formatMs } from '../rates.ts'
import { usePart, useSnapshot } from '../store.ts'
import type { Step } from './steps.ts'
import { awayMs, changesSince, loadSince, type Run, type Stage } from './tour-state.ts'

/** The result of a step, from the answers to its actions and from later events. */
export function StepResult({ step, run, stage }: { step: Step; run: Run; stage: Stage }) {
  const { answers, explained, error } = run
  const commands = [...answers.map(({ command }) => command), ...(explained === null ? [] : [explained.command])]
  return (
    <div class="step-result" aria-live="polite">
      {error !== null && <p class="error">{error}</p>}
      {commands.map((command) => (
        <Command key={command} text={command} />
      ))}
      {step.shows.includes('said') && answers.map((answer) => answer.ok && <p key={answer.did}>{answer.did}</p>)}
      {step.shows.includes('packet') && explained !== null && <PacketResult explained={explained} />}
      {step.shows.includes('away') && <AwayResult run={run} />}
      {step.shows.includes('changes') && <ChangesResult run={run} />}
      {step.shows.includes('proxy') && <ProxyResult run={run} stage={stage} />}
      {step.shows.includes('load') && <LoadResult run={run} />}
    </div>
  )
}

function PacketResult({ explained: { explanation } }: { explained: NonNullable<Run['explained']> }) {
  const way = planWay(explanation, chooseWay(explanation))
  return (
    <>
      <p>
        <b>{explanation.headline}</b>
      </p>
      {explanation.sent !== null && (
        <p>
          It was {explanation.sent.answer}, and went to{' '}
          <code>{explanation.sent.destination ?? 'an unknown place'}</code>.
        </p>
      )}
      {way !== null && <Way way={way} question={explanation.question} wasSent={explanation.sent !== null} />}
    </>
  )
}

function AwayResult({ run }: { run: Run }) {
  const ms = awayMs(
    usePart((state) => state.changes),
    run,
  )
  if (ms === null) return <p class="muted">The rules are away …</p>
  return (
    <p>
      The rules of {run.stage.node} were back <b data-testid="away">{formatMs(ms)}</b> after the program began to flush
      them.
    </p>
  )
}

function ChangesResult({ run: { baseline } }: { run: Run }) {
  const changes = usePart((state) => state.changes)
  const since = changesSince(changes, baseline).filter(({ operations, why }) => operations > 0 || why === 'heal')
  if (since.length === 0) return <p class="muted">Nothing has been written to the kernel yet.</p>
  return (
    <>
      <p>{summary(since)}</p>
      <ol class="changes">
        {since.slice(-3).map((change) => (
          <ChangeItem key={change.id} change={change} />
        ))}
      </ol>
    </>
  )
}

function summary(changes: readonly ChangeEntry[]): string {
  const times = changes.flatMap((change) => tookMs(change) ?? [])
  const operations = changes.reduce((sum, change) => sum + change.operations, 0)
  const slowest =
    times.length === 0 ? '' : `; the slowest reached the kernel ${formatMs(Math.max(...times))} after its event`
  return `${count(changes.length, 'transaction')} with ${count(operations, 'operation')}${slowest}.`
}

function ProxyResult({ run: { baseline }, stage }: { run: Run; stage: Stage }) {
  const proxy = useSnapshot().nodes.find(({ name }) => name === stage.node)?.proxy
  const before = baseline.pids[stage.node] ?? null
  const isBack = proxy?.state === 'ready' && proxy.pid !== before
  return (
    <p>
      The proxy of {stage.node} was process {before ?? '?'};{' '}
      {isBack ? `it runs again as process ${proxy.pid ?? '?'}.` : 'it is being started again …'}
    </p>
  )
}

function LoadResult({ run: { baseline } }: { run: Run }) {
  const load = usePart((state) => state.load)
  if (load === null) return <p class="muted">The client has not asked yet.</p>
  const since = loadSince(load, baseline)
  return (
    <>
      <p>
        Since the click the client was answered <b>{since.answered}</b> times, and failed{' '}
        <b class={since.failed > 0 ? 'bad' : ''} data-testid="failed-since">
          {since.failed}
        </b>{' '}
        times.
      </p>
      <LoadFigures load={load} />
    </>
  )
}
