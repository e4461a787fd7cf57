import { useState } from 'preact/hooks'
import type { Explanation } from '../../../diagnose/explain/explanation.ts'
import type { ExplainAnswer } from '../../protocol.ts'
import { Command } from '../parts/command.tsx'
import { Facts } from '../parts/facts.tsx'
import { Select } from '../parts/select.tsx'
import { planBeside } from './compare.ts'
import { chooseWay, planWay } from './plan-way.ts'
import { Way } from './way.tsx'

export function PacketAnswer({ answer }: { answer: ExplainAnswer }) {
  const { explanation, svg, command } = answer
  const [index, setIndex] = useState(() => chooseWay(explanation))
  const way = planWay(explanation, index)
  const ways = explanation.kernel?.ways ?? []
  const picture = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`
  return (
    <>
      <div class="packet-sides">
        <section aria-labelledby="said">
          <h2 id="said">{explanation.sent === null ? 'Prediction' : 'Prediction and trace'}</h2>
          <BesideTable explanation={explanation} />
          <Why explanation={explanation} />
        </section>
        <section aria-labelledby="way">
          <div class="section-head">
            <h2 id="way">Its way through {explanation.question.node || 'the node'}</h2>
            {ways.length > 1 && (
              <Select
                label="Which way"
                isLabelHidden
                class="small"
                value={String(index)}
                onChoose={(way) => setIndex(Number(way))}
                options={ways.map(({ destination, outcome }, i) => {
                  const words = outcome === 'to' ? `to ${destination}` : outcome
                  return [String(i), explanation.sent?.destination === destination ? `${words} (taken)` : words]
                })}
              />
            )}
          </div>
          {way === null ? (
            <p class="muted">{explanation.kernel?.error ?? 'No kernel was looked at.'}</p>
          ) : (
            <Way key={index} way={way} question={explanation.question} wasSent={explanation.sent !== null} />
          )}
        </section>
      </div>
      <section aria-labelledby="picture" class="picture">
        <div class="section-head">
          <h2 id="picture">As a picture, and at a terminal</h2>
          <a class="button" href={picture} download={fileName(explanation)}>
            Save as SVG
          </a>
        </div>
        <Command text={command} />
        <Picture source={picture} alt={`The way of the packet through the hooks. ${explanation.headline}`} />
      </section>
    </>
  )
}

/** The image exists only while it is open: the browser keeps the memory of each for a while. */
function Picture({ source, alt }: { source: string; alt: string }) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show it</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label="The picture">
        {isOpen && <img src={source} alt={alt} />}
      </div>
    </details>
  )
}

function BesideTable({ explanation }: { explanation: Explanation }) {
  const rows = planBeside(explanation)
  const hasSeen = rows.some(({ seen }) => seen !== null)
  return (
    <table class="beside">
      <thead>
        <tr>
          <td />
          <th scope="col">predicted</th>
          {hasSeen && <th scope="col">traced</th>}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ what, said, seen, agrees }) => (
          <tr key={what} class={agrees === false ? 'is-bad' : ''}>
            <th scope="row">{what}</th>
            <td>{said}</td>
            {hasSeen && (
              <td>
                {agrees !== null && <span class={agrees ? 'yes' : 'no'} />}
                {seen}
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Why({ explanation }: { explanation: Explanation }) {
  const { because, client, frontend, policy, masquerade, affinity, problems, kernel, sent, misses, question } =
    explanation
  const differences = [...(kernel?.differences ?? []), ...(sent?.differences ?? [])]
  const refusing = explanation.backends.filter(({ eligible }) => !eligible)
  return (
    <>
      {differences.map((each) => (
        <p key={each} class="error">
          {each}
        </p>
      ))}
      <Facts
        isWide
        rows={[
          ['because', because],
          question.assumed.length > 0 && ['assumed', question.assumed.join('; ')],
          ['client', client.because],
          ...(frontend === null
            ? misses.map(({ what, why }) => ['nearly', `${what}: ${why}`] as const)
            : [['frontend', `${frontend.kind} of ${frontend.servicePort}`] as const]),
          policy !== null && ['policy', `${policy.why}; ${policy.topology}`],
          masquerade !== null && ['source', masquerade.why],
          affinity !== null && ['affinity', affinityWords(affinity)],
          ...refusing.map(({ address, port, why }) => ['not to', `${address}:${port}: ${why}`] as const),
          ...problems.map((problem) => ['problem', problem] as const),
        ]}
      />
    </>
  )
}

function affinityWords({ remembered, secondsLeft, seconds, backend }: NonNullable<Explanation['affinity']>): string {
  return remembered === true
    ? `entry for another ${secondsLeft ?? seconds} s, at ${backend ?? '?'}`
    : `for ${seconds} s from the first connection on`
}

function fileName({ question: { from, to } }: Explanation): string {
  return `packet-${from}-${to}`.replace(/[^\w.-]+/g, '-').slice(0, 80) + '.svg'
}
