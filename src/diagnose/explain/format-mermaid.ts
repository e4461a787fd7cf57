// The way of a packet as a flow chart of Mermaid, for Markdown.

import type { Explanation } from './explanation.ts'
import { planPicture } from './picture.ts'

const STYLES = [
  'classDef good fill:#d5f5d5,stroke:#2a7d2a,color:#000',
  'classDef bad fill:#f8d7d7,stroke:#a22,color:#000',
  'classDef off fill:#eee,stroke:#999,color:#555',
]

export function formatMermaid(explanation: Explanation): string {
  const { start, hooks, ends } = planPicture(explanation)
  const lines = ['flowchart TD', `  start([${quote(start)}])`]
  let last = 'start'
  for (const [i, { name, lines: met }] of hooks.entries()) {
    lines.push(`  hook${i}[${quote([name, ...met].join('\n'))}]`, `  ${last} --> hook${i}`)
    last = `hook${i}`
  }
  for (const [i, { text, kind }] of ends.entries()) {
    lines.push(`  end${i}([${quote(text)}]):::${kind}`, `  ${last} ${kind === 'off' ? '-.->' : '-->'} end${i}`)
  }
  return `${[...lines, ...STYLES.map((style) => `  ${style}`)].join('\n')}\n`
}

/** Mermaid has entities for what its own language uses. */
function quote(text: string): string {
  const safe = text.replace(/[&"<>#;]/g, (each) => `#${each.charCodeAt(0)};`)
  return `"${safe.replaceAll('\n', '<br/>')}"`
}
