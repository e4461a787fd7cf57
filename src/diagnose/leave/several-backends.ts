// Services whose clients can get one endpoint or another: for the others it does not matter how endpoints are chosen.

import type { Side } from './facts.ts'

/** Their keys, `namespace/name`. */
export function severalBackends({ families }: Side): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const { model } of Object.values(families)) {
    for (const { namespace, service, backends } of model.views()) {
      if (backends.length > 1) keys.add(`${namespace}/${service}`)
    }
  }
  return keys
}
