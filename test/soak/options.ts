// The command line of the soak.

import { parseArgs } from 'node:util'

export const modes = ['nftables', 'iptables', 'ipvs', 'userspace'] as const
export type SoakMode = (typeof modes)[number]

export interface SoakOptions {
  readonly minutes: number
  readonly mode: SoakMode
  readonly seed: number
  /** How many services there are at rest. */
  readonly services: number
  /** Where the report goes as JSON. */
  readonly json: string | undefined
}

const MIN_SERVICES = 8
const MAX_SERVICES = 1000

/** Throws with the option, its value and what is allowed. */
export function parseOptions(args: readonly string[]): SoakOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '5' },
      mode: { type: 'string', default: 'nftables' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
      services: { type: 'string', default: '24' },
      json: { type: 'string' },
    },
  })
  const mode = modes.find((one) => one === values.mode)
  if (mode === undefined) throw new Error(`Cannot use --mode ${values.mode}: must be one of ${modes.join(', ')}`)
  return {
    mode,
    minutes: numberOf('minutes', values.minutes, { low: 0.1, high: 24 * 60, whole: false }),
    seed: numberOf('seed', values.seed, { low: 0, high: 2 ** 32 - 1, whole: true }),
    services: numberOf('services', values.services, { low: MIN_SERVICES, high: MAX_SERVICES, whole: true }),
    json: values.json,
  }
}

interface Allowed {
  readonly low: number
  readonly high: number
  readonly whole: boolean
}

function numberOf(name: string, text: string, { low, high, whole }: Allowed): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= low && value <= high && (!whole || Number.isInteger(value))) return value
  throw new Error(`Cannot use --${name} ${text}: must be a ${whole ? 'whole ' : ''}number from ${low} to ${high}`)
}
