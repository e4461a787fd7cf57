// A diagnosis for people and for programs.

import type { Paint } from '../paint.ts'
import { couldNotLook, type Diagnosis, type NodeDiagnosis } from './examine.ts'
import type { Answer } from './verdict.ts'

export function formatDiagnosis({ service, answers, finding }: Diagnosis, paint: Paint): string {
  const lines = answerLines(answers, paint)
  const end =
    finding === null
      ? [allClear(service, answers, paint), ...nextOfOpen(answers, paint)]
      : [paint('bad', `${service}: ${sentence(finding.what)}`), `Next: ${paint('bold', finding.next)}`]
  return `${[...lines, '', ...end].join('\n')}\n`
}

/** A question without an answer is no all-clear. */
function allClear(subject: string, answers: readonly Answer[], paint: Paint): string {
  const open = answers.filter(({ result }) => result === 'not known').length
  if (open === 0) return paint('good', `${subject}: no problem found.`)
  const count = open === 1 ? '1 question was' : `${open} questions were`
  return paint('bold', `${subject}: no problem found, but ${count} not answered (marked ?).`)
}

/** What shows more of the first open question that has such a command. */
function nextOfOpen(answers: readonly Answer[], paint: Paint): string[] {
  const next = answers.find((each) => each.next !== undefined)?.next
  return next === undefined ? [] : [`Next: ${paint('bold', next)}`]
}

/** Others are only counted. */
const MOST_SHOWN = 20

export function formatNodeDiagnosis(diagnosis: NodeDiagnosis, paint: Paint): string {
  const { node, answers, finding, services, count, looked } = diagnosis
  const lines = [...answerLines(answers, paint), '']
  if (finding !== null) {
    lines.push(paint('bad', `${node}: ${sentence(finding.what)}`), `Next: ${paint('bold', finding.next)}`)
    return `${lines.join('\n')}\n`
  }
  const of = looked < count ? `${looked} of its ${count} Services` : `its ${count} Services`
  if (services.length === 0) {
    const clear = couldNotLook(diagnosis)
      ? [allClear(node, answers, paint), ...nextOfOpen(answers, paint)]
      : [paint('good', `${node}: no problem found, with ${of}; no connections to endpoints were tested.`)]
    lines.push(...clear)
    return `${lines.join('\n')}\n`
  }
  lines.push(
    paint('bad', `${node}: ${services.length} of ${of} ${services.length === 1 ? 'has a problem' : 'have problems'}:`),
  )
  for (const { service, finding: found } of services.slice(0, MOST_SHOWN)) lines.push(`  ${service}: ${found.what}`)
  if (services.length > MOST_SHOWN) lines.push(`  ... and ${services.length - MOST_SHOWN} more (-o json)`)
  const [first] = services
  lines.push(`Next: ${paint('bold', `kube-proxy doctor ${first!.service}`)}`)
  return `${lines.join('\n')}\n`
}

function answerLines(answers: readonly Answer[], paint: Paint): string[] {
  const marks = { yes: paint('good', 'yes'), no: paint('bad', 'NO '), 'not known': paint('dim', ' ? ') }
  return answers.map(({ question, result, detail }) => {
    const note = result !== 'no' && detail !== '' ? paint('dim', `: ${detail}`) : ''
    return `  ${marks[result]}  ${question}${note}`
  })
}

/** With one full stop, whatever the text ends with. */
function sentence(text: string): string {
  return `${text.replace(/\.+$/, '')}.`
}
