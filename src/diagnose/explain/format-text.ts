// An explanation for people: the decision step by step, then the path through the kernel.

import { joinHostPort } from '../../lib/ip.ts'
import { wrapText } from '../../lib/wrap-text.ts'
import { phrase } from './compare.ts'
import type {
  ExplainedBackend,
  ExplainedDrop,
  ExplainedSending,
  ExplainedStep,
  ExplainedWay,
  Explanation,
} from './explanation.ts'
import { type Paint, plain } from '../paint.ts'

const LABEL = 11
const INDENT = ' '.repeat(LABEL)
const WIDTH = 120

export function formatText(explanation: Explanation, paint: Paint = plain): string {
  const { headline, agreement } = explanation
  const lines = [
    paint(agreement === 'differs' ? 'bad' : explanation.outcome === 'to' ? 'good' : 'bold', headline),
    '',
    ...decisionLines(explanation, paint),
    ...kernelLines(explanation, paint),
    ...sentLines(explanation, paint),
  ]
  return `${lines.join('\n')}\n`
}

function decisionLines(explanation: Explanation, paint: Paint): string[] {
  const { question, frontend, misses, client, sources, policy, backends, affinity, masquerade, problems, atConnect } =
    explanation
  const { from, source, node, mode, asked, assumed } = question
  const say = (label: string, text: string) => labelled(label, text, paint)
  if (!question.hasObjects) return say('asked', `${source} to ${target(explanation)}, by ${asked}`)
  return [
    ...say(
      'asked',
      `${from}${from.includes(source) ? '' : ` (${source})`} to ${target(explanation)}, at node ${node} in mode ${mode}, by ${asked}`,
    ),
    ...assumed.flatMap((text) => say('', text)),
    ...(frontend === null
      ? say('frontend', 'none')
      : say('frontend', `${formatFrontend(explanation)} of ${frontend.servicePort}`)),
    ...misses.flatMap(({ what, why }) => say('', `${paint('bad', 'near')}  ${what}: ${why}`)),
    ...say(
      'client',
      `${{ pod: 'a pod', node: 'this node', other: 'neither a pod nor this node' }[client.kind]}: ${client.because}`,
    ),
    ...(sources === null
      ? []
      : say('source', `${sources.allowed ? paint('good', 'allowed') : paint('bad', 'not allowed')}: ${sources.why}`)),
    ...(policy === null ? [] : say('policy', `${policy.why}; ${policy.topology}`)),
    ...(frontend === null ? [] : backendLines(backends, paint)),
    ...problems.flatMap((text) => say('', `${paint('bad', '!')} ${text}`)),
    ...(atConnect === null ? [] : say('connect()', atConnect)),
    ...(affinity === null ? [] : say('affinity', formatAffinity(affinity))),
    ...(masquerade === null ? [] : say('source', formatMasquerade(masquerade))),
    ...say(
      'verdict',
      `${paint(explanation.outcome === 'to' ? 'good' : 'bold', verdictOf(explanation))}: ${explanation.because}`,
    ),
  ]
}

function verdictOf({ outcome, question }: Explanation): string {
  return outcome === 'to' && question.protocol === 'ICMP' ? 'answered by this node' : phrase(outcome)
}

function backendLines(backends: readonly ExplainedBackend[], paint: Paint): string[] {
  const eligible = backends.filter((each) => each.eligible).length
  const width = Math.max(0, ...backends.map(({ address, port }) => joinHostPort(address, port).length))
  return [
    ...labelled(
      'backends',
      backends.length === 0 ? paint('bad', 'none') : `${eligible} of ${backends.length} eligible`,
      paint,
    ),
    ...backends.map(({ address, port, node, eligible: is, why, share }) => {
      const where = node === '' ? 'on an unnamed node' : `on ${node}`
      const mark = is ? paint('good', 'yes') : paint('bad', 'no ')
      const part = share === null ? '' : `${formatPercent(share)} of new connections`
      const said = [why, part].filter(Boolean).join('; ')
      return `${INDENT}${mark}  ${joinHostPort(address, port).padEnd(width)}  ${where}${said === '' ? '' : `: ${said}`}`
    }),
  ]
}

/** `33 %`, `0.4 %` */
function formatPercent(share: number): string {
  const percent = share * 100
  return `${percent < 9.95 ? percent.toFixed(1).replace(/\.0$/, '') : Math.round(percent)} %`
}

function formatAffinity({ seconds, remembered, backend, secondsLeft }: NonNullable<Explanation['affinity']>): string {
  const rule = `ClientIP, for ${seconds} s after the last connection`
  if (remembered === null) return rule
  if (!remembered) return `${rule}; this client has no affinity entry`
  const until = secondsLeft === null ? '' : `, for another ${secondsLeft} s`
  return `${rule}; this client has an affinity entry: ${backend}${until}`
}

function formatMasquerade({ masquerade, why }: NonNullable<Explanation['masquerade']>): string {
  if (masquerade === 'depends on the backend') return `masqueraded or kept, by backend: ${why}`
  return `${masquerade ? 'masqueraded' : 'kept'}: ${why}`
}

function kernelLines({ kernel, agreement }: Explanation, paint: Paint): string[] {
  if (kernel === null) return []
  const lines = ['', ...labelled('kernel', kernel.what, paint)]
  if (kernel.error !== null) return [...lines, ...labelled('', `${paint('bad', 'not read')}: ${kernel.error}`, paint)]
  const [first, ...others] = kernel.ways
  if (first !== undefined) lines.push(...wayLines(first, paint))
  if (others.length > 0)
    lines.push(...labelled('', `or, by random choice or affinity: ${others.map(wayEnd).join('; ')}`, paint))
  for (const difference of kernel.differences) lines.push(...labelled('DIFFERENT', paint('bad', difference), paint))
  if (kernel.differences.length === 0 && agreement !== 'not compared')
    lines.push(...labelled('', paint('good', 'the kernel does what the proxy decided'), paint))
  return lines
}

function wayLines(way: ExplainedWay, paint: Paint): string[] {
  let hook = ''
  const lines = way.steps.flatMap((step) => {
    const head = step.hook === hook ? '' : step.hook
    hook = step.hook
    return stepLines(step, head, paint)
  })
  return [...lines, ...labelled('', `=> ${wayEnd(way)}`, paint)]
}

function stepLines(
  { place, rule, comment, found, packets, bytes }: ExplainedStep,
  head: string,
  paint: Paint,
): string[] {
  const counted = packets === null ? '' : `  [${packets} packets, ${bytes} bytes]`
  const note = comment === null ? '' : `  # ${comment}`
  return [
    `${INDENT}${paint('bold', head.padEnd(12))}${paint('dim', place)}  ${rule}${paint('dim', note + counted)}`,
    ...found.map((text) => `${INDENT}${' '.repeat(14)}${paint('dim', text)}`),
  ]
}

function wayEnd({ outcome, destination, masqueraded }: ExplainedWay): string {
  if (outcome !== 'to') return phrase(outcome)
  return `to ${destination}${masqueraded ? ', masqueraded' : ''}`
}

/** How a packet ended, for people: a line each. */
export function endLines({
  answer,
  droppedBy,
  drops,
  dropsError,
}: Pick<ExplainedSending, 'answer' | 'droppedBy' | 'drops' | 'dropsError'>): string[] {
  if (answer === 'connected' || answer === 'answered') return []
  const byRule = droppedBy === null ? [] : [`dropped by ${droppedBy}`]
  if (drops === null) return [...byRule, `? what the kernel drops cannot be watched here: ${dropsError}`]
  const byKernel = drops.map((drop) => `${drop.packet} is dropped ${dropText(drop)}`)
  if (byRule.length + byKernel.length > 0) return [...byRule, ...byKernel]
  return ['this machine dropped no packet of it: it is lost on another machine, or its receiver keeps silent']
}

/** `on this node, link eth0: a rule of netfilter dropped it (NETFILTER_DROP, in nf_hook_slow())` */
export function dropText({ reason, what, function: name, link, where, rule }: ExplainedDrop): string {
  const at = link === null ? where : `${where}, link ${link}`
  if (rule !== null) return `${at}, by ${rule}`
  const word = [reason, name === null ? null : `in ${name}()`].filter((each) => each !== null).join(', ')
  return `${at}: ${what === null ? word || 'the kernel gives no reason' : `${what}${word === '' ? '' : ` (${word})`}`}`
}

function sentLines({ sent }: Explanation, paint: Paint): string[] {
  if (sent === null) return []
  return [
    '',
    ...labelled('sent', `from ${sent.from}: ${sent.answer}`, paint),
    ...sent.trace.map((line) => `${INDENT}${paint('dim', line)}`),
    ...endLines(sent).flatMap((line, i) => labelled(i === 0 ? 'ended' : '', line, paint)),
    ...sent.differences.flatMap((text) => labelled('DIFFERENT', paint('bad', text), paint)),
    ...(sent.differences.length === 0 ? labelled('', paint('good', 'the packet went as predicted'), paint) : []),
  ]
}

function formatFrontend({ frontend, question }: Explanation): string {
  if (frontend === null) return ''
  const kind = {
    clusterIP: 'cluster IP',
    externalIP: 'external IP',
    loadBalancerIP: 'load-balancer IP',
    nodePort: 'node port',
  }[frontend.kind]
  const where =
    frontend.address === null
      ? `${frontend.port} on ${question.destination}`
      : joinHostPort(frontend.address, frontend.port)
  return `${kind} ${where}/${frontend.protocol}`
}

function target({ question: { to, destination, port, protocol } }: Explanation): string {
  const dialled = protocol === 'ICMP' ? `${destination}, a ping` : `${joinHostPort(destination, port)}/${protocol}`
  return to === joinHostPort(destination, port) ? dialled : `${to}, ${dialled}`
}

/** A label, and a text that is broken into lines behind it. */
export function labelled(label: string, text: string, paint: Paint): string[] {
  return wrapText(text, WIDTH - LABEL).map(
    (line, i) => `${i === 0 ? paint(label === 'DIFFERENT' ? 'bad' : 'bold', label.padEnd(LABEL)) : INDENT}${line}`,
  )
}
