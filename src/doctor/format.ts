// A diagnosis for people and for programs.

import type { Paint } from '../explain/paint.ts'
import type { Diagnosis } from './examine.ts'

export function formatDiagnosis({ service, answers, finding }: Diagnosis, paint: Paint): string {
  const marks = { yes: paint('good', 'yes'), no: paint('bad', 'NO '), 'not known': paint('dim', ' ? ') }
  const lines = answers.map(({ question, result, detail }) => {
    const note = result !== 'no' && detail !== '' ? paint('dim', `: ${detail}`) : ''
    return `  ${marks[result]}  ${question}${note}`
  })
  const end =
    finding === null
      ? [paint('good', `${service}: nothing is wrong that can be seen from here.`)]
      : [paint('bad', `${service}: ${finding.what}.`), `Next: ${paint('bold', finding.next)}`]
  return `${[...lines, '', ...end].join('\n')}\n`
}

export function formatDiagnosisJson({ service, answers, finding }: Diagnosis): string {
  return `${JSON.stringify({ version: 1, service, finding, answers }, null, 2)}\n`
}
