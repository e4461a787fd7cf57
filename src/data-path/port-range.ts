// Ranges of ports, as kube-proxy's flags write them.

import { sha256Word } from '../lib/hash.ts'

/** Both ends belong to it. */
export interface PortRange {
  readonly first: number
  readonly last: number
}

/** `30000-30100`, `30000+100`, or a single port; undefined for an empty text, '0' or '0-0': any. */
export function parsePortRange(text: string): PortRange | undefined {
  const match = /^\s*(\d{1,5})\s*(?:([-+])\s*(\d{1,5}))?\s*$/.exec(text)
  if (text.trim() === '') return undefined
  const fail = (reason: string) =>
    new Error(`Cannot use port range ${JSON.stringify(text)}: ${reason}; must be "first-last", as in "40000-40999"`)
  if (match === null) throw fail('it is not a range')
  const first = Number(match[1])
  const last = match[3] === undefined ? first : match[2] === '+' ? first + Number(match[3]) : Number(match[3])
  if (last > 65_535) throw fail('65535 is the last port')
  if (last < first) throw fail('it ends before it begins')
  return first === 0 ? undefined : { first, last }
}

/** All ports of a range, beginning at one that depends on the name: the same name gets the same port, if that is free. */
export function* portsFor(name: string, { first, last }: PortRange): Generator<number> {
  const count = last - first + 1
  const start = sha256Word(name) % count
  for (let i = 0; i < count; i++) yield first + ((start + i) % count)
}
