// What a user can ask of a pod beyond Kubernetes, by annotations.

import type { Pod } from './pod.ts'

export const readyAnnotation = 'sandbox/ready'
export const failAnnotation = 'sandbox/fail'

const allowed: Readonly<Record<string, readonly string[]>> = {
  [readyAnnotation]: ['true', 'false'],
  [failAnnotation]: ['none', 'refuse', 'hang', 'die', 'slow'],
}

/** What of it means nothing. */
export function unknownAnnotationValues({ metadata }: Pod): string[] {
  return Object.entries(allowed).flatMap(([name, values]) => {
    const value = metadata.annotations?.[name]
    if (value === undefined || values.includes(value)) return []
    return [`annotation ${name} means nothing as ${JSON.stringify(value)}: it may be ${values.join(', ')}`]
  })
}
