// What iptables-restore --noflush would do with a text, on tables as data. Tests hold the planners against it.

import { isBuiltIn } from '../../src/iptables/format.ts'
import { orderless, targetOf } from '../../src/iptables/same.ts'
import type { Chains, RuleText, TableName, Tables } from '../../src/iptables/types.ts'

type MutableChains = Map<string, RuleText[]>

const VERDICTS: readonly string[] = ['ACCEPT', 'DROP', 'RETURN', 'REJECT', 'MARK', 'MASQUERADE', 'DNAT']

const BUILT_IN = {
  mangle: ['PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING'],
  filter: ['INPUT', 'FORWARD', 'OUTPUT'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
} as const satisfies Record<TableName, readonly string[]>

/** The tables after the script. Like iptables, refuses to touch what is not there; then the section changes nothing. */
export function applyScript(before: Tables, text: string): Tables {
  const tables = new Map(before)
  const lines = text.split('\n')
  let name: TableName | undefined
  let chains: MutableChains = new Map()
  for (const [i, line] of lines.entries()) {
    try {
      if (line === '') continue
      if (line.startsWith('*')) {
        name = line.slice(1) as TableName
        chains = copyOf(tables.get(name) ?? new Map(BUILT_IN[name].map((chain) => [chain, []])))
      } else if (line === 'COMMIT') {
        checkJumps(chains)
        tables.set(name!, chains)
      } else {
        applyLine(chains, line)
      }
    } catch (error) {
      throw new ScriptError(i + 1, tables, { cause: error })
    }
  }
  return tables
}

export class ScriptError extends Error {
  override readonly name = 'ScriptError'
  /** From 1. */
  readonly line: number
  /** What the sections before the refused one have done. */
  readonly tables: Tables

  constructor(line: number, tables: Tables, options: ErrorOptions) {
    super(`iptables-restore: line ${line} failed: ${String(options.cause)}`, options)
    this.line = line
    this.tables = tables
  }
}

function applyLine(chains: MutableChains, line: string): void {
  if (line.startsWith(':')) {
    chains.set(line.slice(1, line.indexOf(' ')), [])
    return
  }
  const [, command, chain, rule = ''] = /^(-[ADIX]) (\S+)(?: (.*))?$/.exec(line) ?? []
  const rules = chains.get(chain!)
  if (rules === undefined) throw new Error(`no chain ${chain}`)
  switch (command) {
    case '-A':
      rules.push(rule)
      break
    case '-I':
      rules.unshift(rule)
      break
    case '-D': {
      const at = rules.findIndex((each) => orderless(each) === orderless(rule))
      if (at < 0) throw new Error('no such rule')
      rules.splice(at, 1)
      break
    }
    case '-X':
      if (rules.length > 0 || isBuiltIn(chain!)) throw new Error(`cannot delete chain ${chain}`)
      chains.delete(chain!)
      break
    default:
      throw new Error(`not a line of iptables-restore: ${line}`)
  }
}

function checkJumps(chains: MutableChains): void {
  for (const rules of chains.values()) {
    for (const rule of rules) {
      const target = targetOf(rule)
      if (target === undefined || VERDICTS.includes(target) || chains.has(target)) continue
      throw new Error(`no chain ${target} for ${rule}`)
    }
  }
}

function copyOf(chains: Chains): MutableChains {
  return new Map(Array.from(chains, ([name, rules]) => [name, [...rules]]))
}
