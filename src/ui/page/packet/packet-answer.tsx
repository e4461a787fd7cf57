import { useState } from 'preact/hooks'
import type { Explanation } from '../../../diagnose/explain/explanation.ts'
import type { ExplainAnswer } from '../../protocol.ts'
import { Command } from '../parts/command.tsx'
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
              <label class="small">
                <span class="hidden">Which way</span>
                <select value={String(index)} onChange={(event) => setIndex(Number(event.currentTarget.value))}>
                  {ways.map(({ destination, outcome }, i) => (
                    <option key={destination} value={String(i)}>
                      {outcome === 'to' ? `to ${destination}` : outcome}
                      {explanation.sent?.destination === destination ? ' (taken)' : ''}
                    </option>
                  ))}
                </select>
              </label>
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

/** A picture is a document of its own, which the browser keeps for a while: there is none unless it is looked at. */
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

/** The reasons, as explain gives them. */
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
      <dl class="facts is-wide">
        <Fact name="because" text={because} />
        {question.assumed.length > 0 && <Fact name="assumed" text={question.assumed.join('; ')} />}
        <Fact name="client" text={client.because} />
        {frontend === null ? (
          misses.map(({ what, why }) => <Fact key={what} name="nearly" text={`${what}: ${why}`} />)
        ) : (
          <Fact name="frontend" text={`${frontend.kind} of ${frontend.servicePort}`} />
        )}
        {policy !== null && <Fact name="policy" text={`${policy.why}; ${policy.topology}`} />}
        {masquerade !== null && <Fact name="source" text={masquerade.why} />}
        {affinity !== null && (
          <Fact
            name="affinity"
            text={
              affinity.remembered === true
                ? `entry for another ${affinity.secondsLeft ?? affinity.seconds} s, at ${affinity.backend ?? '?'}`
                : `for ${affinity.seconds} s from the first connection on`
            }
          />
        )}
        {refusing.map(({ address, port, why }) => (
          <Fact key={address} name="not to" text={`${address}:${port}: ${why}`} />
        ))}
        {problems.map((problem) => (
          <Fact key={problem} name="problem" text={problem} />
        ))}
      </dl>
    </>
  )
}

function Fact({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  )
}

function fileName({ question: { from, to } }: Explanation): string {
  return `packet-${from}-${to}`.replace(/[^\w.-]+/g, '-').slice(0, 80) + '.svg'
}
