// Which iptables this machine has, and whether its kernel answers.

import { UnsupportedError } from '../lib/errors.ts'
import type { Family } from '../lib/ip.ts'
import {
  type BackendChoice,
  chooseBackend,
  formatVersion,
  type IptablesPrograms,
  parseVersion,
  programName,
  versionProblem,
  versionWarning,
} from '../state/iptables/programs.ts'
import type { Backend } from '../state/iptables/script.ts'
import { runProgramNow } from './run-program.ts'

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
  const { programs, reason } = choose(findPrograms())
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

function choose(found: readonly IptablesPrograms[]): { programs: IptablesPrograms; reason: string } {
  const [first, second] = found
  if (first === undefined) {
    throw new UnsupportedError(FEATURE, 'none of the programs iptables-nft, iptables-legacy and iptables is installed')
  }
  if (second === undefined) return { programs: first, reason: 'it is the only one' }
  const { backend, reason } = chooseInstalled(found)
  return { programs: found.find((each) => each.backend === backend) ?? first, reason }
}

function chooseInstalled(found: readonly IptablesPrograms[]): BackendChoice {
  const of = (backend: Backend) => found.find((each) => each.backend === backend)
  return chooseBackend({
    nftMangle: () => save(of('nft'), ['-t', 'mangle']),
    nft: () => save(of('nft'), []),
    // Without -t: naming a table would make the kernel create it.
    legacy: () => save(of('legacy'), []),
  })
}

/** What both families have; nothing where the program cannot say. */
function save(programs: IptablesPrograms | undefined, args: readonly string[]): string {
  if (programs === undefined) return ''
  const both = ([4, 6] as const).map((family) => runProgramNow(programName(programs, family, '-save'), args))
  return both.map(({ stdout }) => stdout).join('')
}

/** What is wrong; undefined when the kernel has what it takes. */
function askKernel(programs: IptablesPrograms, family: Family): string | undefined {
  const name = programName(programs, family, '')
  const { code, stderr } = runProgramNow(name, ['-t', 'nat', '-S', 'POSTROUTING'])
  if (code === 0 || /xtables lock/.test(stderr)) return undefined
  if (code === 'missing') return `${name} is not installed`
  return `${name} cannot use the nat table of the kernel: ${stderr.trim().split('\n').at(-1)}`
}
