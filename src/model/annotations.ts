// Our annotations of Services and EndpointSlices: one table of their keys, and of what they may say.
//
// What an annotation says wrongly is ignored: the Service works as without it, and its owner is told what is allowed.

import { type Balance, BALANCE_ANNOTATION, BALANCES } from './balance.ts'
import { CONNECT_RETRY_ANNOTATION } from './connect-retry.ts'
import { ENDS_ANNOTATION, parseEnds } from './ends.ts'
import { LIMITS_ANNOTATION, parseLimits } from './limits.ts'
import { Summary } from './summary.ts'
import { TRAFFIC_METRICS_ANNOTATION } from './traffic-metrics.ts'
import { quote } from './valid.ts'
import { parseWeights, WEIGHTS_ANNOTATION } from './weights.ts'
import { WITHOUT_LOCAL_ANNOTATION, WITHOUT_LOCAL_WORDS } from './without-local.ts'

interface Annotation<T> {
  readonly key: string
  /** Undefined: nothing of it can be used. Tells `refuse` what is ignored, and what is allowed there. */
  readonly parse: (text: string, refuse: Refuse) => T | undefined
}

/** Takes the part that is ignored, and what is allowed in its place: `must be "on" or "off"`. */
export type Refuse = (part: string, allowed: string) => void

const ANNOTATIONS = {
  balance: oneOf(
    BALANCE_ANNOTATION,
    Object.fromEntries(BALANCES.map((each) => [each, each])) as Record<Balance, Balance>,
  ),
  weights: { key: WEIGHTS_ANNOTATION, parse: parseWeights },
  connectRetry: oneOf(CONNECT_RETRY_ANNOTATION, { on: true, off: false }),
  ends: { key: ENDS_ANNOTATION, parse: parseEnds },
  limits: { key: LIMITS_ANNOTATION, parse: parseLimits },
  withoutLocal: oneOf(WITHOUT_LOCAL_ANNOTATION, WITHOUT_LOCAL_WORDS),
  trafficMetrics: oneOf(TRAFFIC_METRICS_ANNOTATION, { on: true, off: false }),
} satisfies Record<string, Annotation<unknown>>

type Name = keyof typeof ANNOTATIONS
type Value<K extends Name> = NonNullable<ReturnType<(typeof ANNOTATIONS)[K]['parse']>>

/** What the annotations of a Service say. Absent: nothing, or nothing that is allowed. */
export type ServiceAnnotations = {
  readonly [K in Name]?: Value<K>
} & {
  /** Those that are there, as they were written. */
  readonly texts?: Readonly<Record<string, string>>
}

/** Shared by the many Services that have none of them. */
const NONE: ServiceAnnotations = {}

/** What is ignored goes to `problems`. */
export function readAnnotations(
  annotations: Readonly<Record<string, string>> | undefined,
  problems: string[],
): ServiceAnnotations {
  if (annotations === undefined) return NONE
  const read: Record<string, unknown> = {}
  const texts: Record<string, string> = {}
  for (const name of Object.keys(ANNOTATIONS) as Name[]) {
    const { key } = ANNOTATIONS[name]
    const text = annotations[key]
    if (text === undefined) continue
    texts[key] = text
    const value = parseAnnotation(name, text, problems)
    if (value !== undefined) read[name] = value
  }
  return Object.keys(texts).length === 0 ? NONE : { ...read, texts }
}

/** The value of one of them. */
function parseAnnotation<K extends Name>(name: K, text: string, problems: string[]): Value<K> | undefined {
  const { key, parse } = ANNOTATIONS[name] as Annotation<Value<K>>
  const bad = new Summary()
  const value = parse(text, (part, allowed) =>
    bad.add(() => `annotation ${key}: ${quote(part)} is ignored, it ${allowed}`),
  )
  bad.addTo(problems)
  return value
}

export function sameAnnotations({ texts: a }: ServiceAnnotations, { texts: b }: ServiceAnnotations): boolean {
  if (a === b) return true
  if (a === undefined || b === undefined) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key])
}

function oneOf<T>(key: string, values: Readonly<Record<string, T>>): Annotation<T> {
  const texts = Object.keys(values).map((text) => JSON.stringify(text))
  const allowed = `must be ${texts.slice(0, -1).join(', ')} or ${texts.at(-1)}`
  return {
    key,
    parse: (text, refuse) => {
      if (Object.hasOwn(values, text)) return values[text]
      refuse(text, allowed)
      return undefined
    },
  }
}
