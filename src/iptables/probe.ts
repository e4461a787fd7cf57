// Which iptables this machine has, and whether its kernel answers.

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
import { runProgramNow } from '../system/run-program.ts'

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

/** Throws an UnsupportedError when iptables is missing, too old, or not supported by the kernel. */
export function probeIptables(families: readonly Family[]): FoundIptables {
  const { programs, reason } = choosePrograms()
  const problem = versionProblem(programs)
  if (problem !== undefined) throw new UnsupportedError(FEATURE, problem)
  const answers = families.map((family) => askKernel(programs, family))
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

/** Every iptables of this machine, at most one per backend. */
export function findPrograms(): IptablesPrograms[] {
  const named = ['iptables-nft', 'iptables-legacy'].map(findProgram)
  const found = named.filter((programs) => programs !== undefined)
  if (found.length > 0) return found
  const only = findProgram('iptables')
  return only === undefined ? [] : [only]
}

function findProgram(name: string): IptablesPrograms | undefined {
  const { code, stdout } = runProgramNow(name, ['--version'])
  const parsed = code === 0 ? parseVersion(stdout) : undefined
  return parsed === undefined ? undefined : { name, ...parsed }
}

/** Each program that is started costs some milliseconds, so no more are than it takes. */
function choosePrograms(): { programs: IptablesPrograms; reason: string } {
  const nft = findProgram('iptables-nft')
  const legacy = new Lazy(() => findProgram('iptables-legacy'))
  const choice = chooseBackend({
    nftMangle: () => save(nft, ['-t', 'mangle']),
    nft: () => save(nft, []),
    // Without -t: naming a table would make the kernel create it.
    legacy: () => save(legacy.value, []),
  })
  const chosen = choice.backend === 'nft' ? (nft ?? legacy.value) : legacy.value
  if (chosen?.backend === choice.backend) return { programs: chosen, reason: choice.reason }
  const only = chosen ?? findProgram('iptables')
  if (only !== undefined) return { programs: only, reason: 'it is the only one' }
  throw new UnsupportedError(FEATURE, 'none of the programs iptables-nft, iptables-legacy and iptables is installed')
}

class Lazy<T> {
  readonly #make: () => T
  #made: { readonly value: T } | undefined

  constructor(make: () => T) {
    this.#make = make
  }

  get value(): T {
    return (this.#made ??= { value: this.#make() }).value
  }
}

/** What each family has; nothing where the program cannot say. */
function* save(programs: IptablesPrograms | undefined, args: readonly string[]): Generator<string> {
  if (programs === undefined) return
  for (const family of [4, 6] as const) {
    yield runProgramNow(programName(programs, family, '-save'), args).stdout
  }
}

/** What is wrong; undefined when the kernel has what it takes. */
function askKernel(programs: IptablesPrograms, family: Family): string | undefined {
  const name = programName(programs, family, '')
  const { code, stderr } = runProgramNow(name, ['-t', 'nat', '-S', 'POSTROUTING'])
  if (code === 0 || /xtables lock/.test(stderr)) return undefined
  if (code === 'missing') return `${name} is not installed`
  return `${name} cannot use the nat table of the kernel: ${stderr.trim().split('\n').at(-1)}`
}
