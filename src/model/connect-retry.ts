// Whether connections of a Service are tried again when their backend does not answer, from an annotation of the Service.
//
//     service.kube-proxy-ts.io/connect-retry: "on"
//
// Without it, `--connect-retry` decides.

import { quote } from './valid.ts'

export const CONNECT_RETRY_ANNOTATION = 'service.kube-proxy-ts.io/connect-retry'

/** Undefined: the Service does not say. */
export function parseConnectRetry(text: string | undefined, problems: string[]): boolean | undefined {
  if (text === undefined) return undefined
  if (text === 'on') return true
  if (text === 'off') return false
  problems.push(`annotation ${CONNECT_RETRY_ANNOTATION}: ${quote(text)} is ignored, it must be "on" or "off"`)
  return undefined
}
