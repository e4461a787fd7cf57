// Which proxy modes may be chosen, and what the configuration has to know of them.

import { featureEnabled } from './feature-gates.ts'
import { configurationFields } from './fields.ts'
import type { FieldTable } from './field-kinds.ts'

export interface ModeFacts {
  readonly name: string
  /** The gate that turns it off. */
  readonly featureGate?: Parameters<typeof featureEnabled>[1]
  /** nodePortAddresses where the configuration has none. */
  readonly defaultNodePortAddresses: readonly string[]
  /** Whether it gives a connection to any endpoint by chance alone: then a process can as well choose when it connects. */
  readonly choosesAtRandom: boolean
  /** The mode that stands in for it where this machine cannot run it. */
  readonly standIn?: string
  /** The one that does where the operator asks for the chain that kube-proxy's old documentation describes. */
  readonly oldStandIn?: string
}

/** Whether another mode may stand in for one that this machine cannot run, and which. */
export type StandIns = 'allowed' | 'with userspace' | 'refused'

/** The mode that stands in for one, as far as that is wanted. */
export function standInFor({ standIn, oldStandIn }: ModeFacts, standIns: StandIns): string | undefined {
  if (standIns === 'refused') return undefined
  return standIns === 'with userspace' ? (oldStandIn ?? standIn) : standIn
}

/** The modes that exist in this program, in the order in which they are listed. The first is the default. */
export type AvailableModes = readonly ModeFacts[]

type PeriodBlock = 'iptables' | 'ipvs' | 'nftables'
type MasqueradeBlock = 'iptables' | 'nftables'

/**
 * The blocks of a file that hold a mode's periods and its masquerade settings: the one with its name, or that of iptables
 * where there is none or where it does not say. Thus ipvs borrows the masquerade settings of iptables, as in kube-proxy.
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
