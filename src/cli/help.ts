// The text of --help, from the table of flags.

import type { AvailableModes } from '../config/modes.ts'
import { formatPairs } from '../lib/command.ts'
import { wrapText } from '../lib/wrap-text.ts'
import { printDefault } from './apply-flags.ts'
import { commands, sandbox } from './commands.ts'
import { flagGroups, type FlagSpec } from './flag-spec.ts'
import { allFlags } from './flags.ts'
import { kindOfFlag } from './parse-flags.ts'

const indent = ' '.repeat(10)

/** Grouped, and wrapped to the width. */
export function formatHelp(modes: AvailableModes, width: number = 100): string {
  const intro = [
    'kube-proxy-ts: the Kubernetes node service proxy. It makes the Services of the cluster reachable from this node.',
    `Proxy modes in this version: ${modes.map(({ name }) => name).join(', ')}.`,
  ].flatMap((line) => wrapText(line, width))
  const groups = flagGroups.map((group) => formatGroup(group, width))
  const rows = [
    ['kube-proxy [flags]', 'run the proxy'],
    ...[...commands, sandbox].map(({ name, summary }) => [`kube-proxy ${name}`, summary]),
    ['kube-proxy help COMMAND', 'the options of a command'],
  ]
  const usage = ['Usage:', ...formatPairs(rows).map((line) => `  ${line}`)]
  const exit = 'Exit status: 0 when all went well, 1 otherwise.'
  return `${[intro.join('\n'), usage.join('\n'), ...groups, exit].join('\n\n')}\n`
}

function formatGroup(group: FlagSpec['group'], width: number): string {
  const flags = allFlags.filter((spec) => spec.group === group)
  if (group === 'Flags that are accepted and do nothing') {
    const names = flags.map(({ name }) => `--${name}`).join(', ')
    return [`${group}:`, ...wrapText(names, width - 2).map((line) => `  ${line}`)].join('\n')
  }
  return [`${group}:`, ...flags.flatMap((spec) => formatFlag(spec, width))].join('\n')
}

function formatFlag(spec: FlagSpec, width: number): string[] {
  const kind = kindOfFlag(spec)
  const short = spec.short === undefined ? '    ' : `-${spec.short}, `
  const word = spec.kind === 'bool' ? '' : kind.bare === undefined ? ` ${kind.word}` : `[=${kind.word}]`
  const value = printDefault(spec)
  const isEmpty = value === '' || value === '[]' || value === '0' || value === '0s' || value === 'false'
  const help = `${spec.help}${isEmpty ? '' : ` (default ${value})`}`
  return [
    `  ${short}--${spec.name}${word}`,
    ...help
      .split('\n')
      .flatMap((line) => wrapText(line, width - indent.length))
      .map((line) => indent + line),
  ]
}
