// Annotations of a Service that say "on" or "off".

import { quote } from './valid.ts'

/** Undefined: the Service does not say. */
export function parseOnOff(
  annotations: Readonly<Record<string, string>> | undefined,
  key: string,
  problems: string[],
): boolean | undefined {
  const text = annotations?.[key]
  if (text === undefined) return undefined
  if (text === 'on') return true
  if (text === 'off') return false
  problems.push(`annotation ${key}: ${quote(text)} is ignored, it must be "on" or "off"`)
  return undefined
}
