// The proxy modes that a configuration may choose, and their properties.

import { featureEnabled } from './feature-gates.ts'
import { configurationFields } from './fields.ts'
import type { FieldTable } from './field-kinds.ts'

export interface ModeFacts {
  readonly name: string
  /** The gate that turns it off. */
  readonly featureGate?: Parameters<typeof featureEnabled>[1]
  /** nodePortAddresses where the configuration has none. */
  readonly defaultNodePortAddresses: readonly string[]
  /** Whether it chooses endpoints at random: then a process may also choose when it connects. */
  readonly choosesAtRandom: boolean
  /** The ways to choose an endpoint that it has, for `balance`. */
  readonly balances: readonly string[]
  /** The mode that replaces it where this machine cannot run it. */
  readonly standIn?: string
  /** The same with `--userspace-fallback`, as in kube-proxy's old documentation. */
  readonly oldStandIn?: string
}

/** Whether another mode may replace one that this machine cannot run, and which. */
export type StandIns = 'allowed' | 'with userspace' | 'refused'

/** The mode that replaces another one, if that is allowed. */
export function standInFor({ standIn, oldStandIn }: ModeFacts, standIns: StandIns): string | undefined {
  if (standIns === 'refused') return undefined
  return standIns === 'with userspace' ? (oldStandIn ?? standIn) : standIn
}

/** All modes in the order of the help. The first is the default. */
export type AvailableModes = readonly ModeFacts[]

type PeriodBlock = 'iptables' | 'ipvs' | 'nftables'
type MasqueradeBlock = 'iptables' | 'nftables'

/**
 * The blocks of a file with a mode's periods and masquerade settings: the block of its name, or that of iptables if it has none.
 * As in kube-proxy, ipvs has the masquerade settings of iptables.
 */
export function blockOf(mode: string): { periods: PeriodBlock; masquerade: MasqueradeBlock } {
  const own: FieldTable = fieldsOfBlock(mode)
  return {
    periods: 'syncPeriod' in own ? (mode as PeriodBlock) : 'iptables',
    masquerade: 'masqueradeAll' in own ? (mode as MasqueradeBlock) : 'iptables',
  }
}

function fieldsOfBlock(name: string): FieldTable {
  const field = (configurationFields as FieldTable)[name]
  return field?.kind === 'object' ? field.fields : {}
}

/** Why a mode cannot be used and which can, or undefined. */
export function checkMode(
  mode: string,
  available: AvailableModes,
  featureGates: Readonly<Record<string, boolean>>,
): string | undefined {
  const allowed = available.filter(
    ({ featureGate }) => featureGate === undefined || featureEnabled(featureGates, featureGate),
  )
  if (allowed.some(({ name }) => name === mode)) return undefined
  return `${reasonAgainst(mode, available)}must be ${listOf(allowed.map(({ name }) => name))}`
}

function reasonAgainst(mode: string, available: AvailableModes): string {
  if (mode === 'kernelspace') return 'the mode kernelspace is for Windows; '
  return available.some(({ name }) => name === mode) ? `the mode ${mode} is turned off by a feature gate; ` : ''
}

function listOf(modes: readonly string[]): string {
  return modes.length === 1 ? `${modes[0]}` : `one of ${modes.join(', ')}`
}
