// Which iptables this machine has, and whether its kernel answers.

import { readFileSync } from 'node:fs'
import { UnsupportedError } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import {
  chooseBackend,
  formatVersion,
  type IptablesPrograms,
  parseVersion,
  programName,
  versionProblem,
  versionWarning,
} from './programs.ts'
import { runProgram } from '../system/run-program.ts'
import { hasLegacyTables } from './legacy-tables.ts'

export interface FoundIptables {
  readonly programs: IptablesPrograms
  /** The families that work: those of the ones that were asked for. Never empty. */
  readonly families: readonly Family[]
  /** Why this backend, for the log. */
  readonly reason: string
  /** What a person should know. */
  readonly warnings: readonly string[]
}

const FEATURE = 'the iptables mode'

/** Rejects with an UnsupportedError when iptables is missing, too old, or not supported by the kernel. */
export async function probeIptables(families: readonly Family[]): Promise<FoundIptables> {
  const { programs, reason } = await choosePrograms()
  const problem = versionProblem(programs)
  if (problem !== undefined) throw new UnsupportedError(FEATURE, problem)
  const answers = await Promise.all(families.map((family) => askKernel(programs, family)))
  const working = families.filter((_, i) => answers[i] === undefined)
  if (working.length === 0) throw new UnsupportedError(FEATURE, answers[0] ?? 'there is no IP family to use it for')
  const warning = versionWarning(programs)
  const failures = answers.filter((answer) => answer !== undefined)
  return { programs, families: working, reason, warnings: [...(warning === undefined ? [] : [warning]), ...failures] }
}

/** `iptables-nft 1.8.9` */
export function describePrograms({ name, version }: IptablesPrograms): string {
  return `${name} ${formatVersion(version)}`
}

const NAMES = ['iptables-nft', 'iptables-legacy']

/** Those that may have rules here: each program that is started costs some milliseconds, and iptables-legacy is asked in vain on most nodes. */
export function findProgramsWithRules(): Promise<IptablesPrograms[]> {
  return findPrograms(hasLegacyTables((file) => readFileSync(file, 'latin1')) ? NAMES : ['iptables-nft'])
}

/** Every iptables of this machine, at most one per backend. */
export async function findPrograms(names: readonly string[] = NAMES): Promise<IptablesPrograms[]> {
  const named = await Promise.all(names.map(findProgram))
  const found = named.filter((programs) => programs !== undefined)
  if (found.length > 0) return found
  const only = await findProgram('iptables')
  return only === undefined ? [] : [only]
}

async function findProgram(name: string): Promise<IptablesPrograms | undefined> {
  const { code, stdout } = await runProgram(name, ['--version'])
  const parsed = code === 0 ? parseVersion(stdout) : undefined
  return parsed === undefined ? undefined : { name, ...parsed }
}

export interface ChosenPrograms {
  readonly programs: IptablesPrograms
  /** Why this backend. */
  readonly reason: string
}

/**
 * Which iptables to use, by what is on this machine; changes nothing. `leave` does not ask iptables-nft, which would make the
 * kernel load nftables. Rejects with an UnsupportedError when there is none.
 *
 * Each program that is started costs some milliseconds, so no more are than it takes.
 */
export async function choosePrograms(nftables: 'ask' | 'leave' = 'ask'): Promise<ChosenPrograms> {
  const nft = findProgram('iptables-nft')
  let found: ReturnType<typeof findProgram> | undefined
  const legacy = () => (found ??= findProgram('iptables-legacy'))
  const choice = await chooseBackend({
    nftMangle: async function* () {
      if (nftables === 'ask') yield* savedText(await nft, ['-t', 'mangle'])
    },
    nft: async function* () {
      if (nftables === 'ask') yield* savedText(await nft)
    },
    // Without -t: naming a table would make the kernel create it.
    legacy: async function* () {
      yield* savedText(await legacy())
    },
  })
  const chosen = choice.backend === 'nft' ? ((await nft) ?? (await legacy())) : await legacy()
  if (chosen?.backend === choice.backend) return { programs: chosen, reason: choice.reason }
  const only = chosen ?? (await findProgram('iptables'))
  if (only !== undefined) return { programs: only, reason: 'it is the only one' }
  throw new UnsupportedError(FEATURE, 'none of the programs iptables-nft, iptables-legacy and iptables is installed')
}

/** What iptables-save prints for each family; nothing where the program cannot say. */
export async function* savedText(
  programs: IptablesPrograms | undefined,
  args: readonly string[] = [],
): AsyncGenerator<string> {
  if (programs === undefined) return
  for (const family of [4, 6] as const) {
    yield (await runProgram(programName(programs, family, '-save'), args)).stdout
  }
}

/** What is wrong; undefined when the kernel has what it takes. */
async function askKernel(programs: IptablesPrograms, family: Family): Promise<string | undefined> {
  const name = programName(programs, family, '')
  const { code, stderr } = await runProgram(name, ['-t', 'nat', '-S', 'POSTROUTING'])
  if (code === 0 || /xtables lock/.test(stderr)) return undefined
  if (code === 'missing') return `${name} is not installed`
  return `${name} cannot use the nat table of the kernel: ${stderr.trim().split('\n').at(-1)}`
}
