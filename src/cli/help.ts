// The text of --help, from the table of flags.

import type { AvailableModes } from '../config/modes.ts'
import { printDefault } from './apply-flags.ts'
import { flagGroups, type FlagSpec } from './flag-spec.ts'
import { allFlags } from './flags.ts'
import { kindOfFlag } from './parse-flags.ts'

const indent = ' '.repeat(10)

const commands = [
  '  kube-proxy check     look whether it can run here, and change nothing',
  '  kube-proxy explain   what happens to a connection, and why',
  '  kube-proxy doctor    my Service does not answer: what is wrong?',
  '  kube-proxy plan      what it would change in this kernel; changes nothing',
  '  kube-proxy render    what a mode would program, as text for nft and others',
  '  kube-proxy top       what goes through the services of this node, live',
  '  kube-proxy ui        a page that shows what the proxy of this node does',
  '  kube-proxy sandbox   a miniature cluster to try it on',
]

/** Grouped, and wrapped to the width. */
export function formatHelp(modes: AvailableModes, width: number = 100): string {
  const intro = [
    'kube-proxy-ts: the Kubernetes node service proxy. It makes the Services of the cluster reachable from this node.',
    `Proxy modes in this version: ${modes.map(({ name }) => name).join(', ')}.`,
  ].flatMap((line) => wrap(line, width))
  const groups = flagGroups.map((group) => formatGroup(group, width))
  const exit = 'Exit status: 0 when all went well, 1 otherwise.'
  return `${[[...intro, '', 'Usage:', '  kube-proxy [flags]', ...commands].join('\n'), ...groups, wrap(exit, width).join('\n')].join('\n\n')}\n`
}

function formatGroup(group: FlagSpec['group'], width: number): string {
  const flags = allFlags.filter((spec) => spec.group === group)
  if (group === 'Flags that are accepted and do nothing') {
    const names = flags.map(({ name }) => `--${name}`).join(', ')
    return [`${group}:`, ...wrap(names, width - 2).map((line) => `  ${line}`)].join('\n')
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
      .flatMap((line) => wrap(line, width - indent.length))
      .map((line) => indent + line),
  ]
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}
