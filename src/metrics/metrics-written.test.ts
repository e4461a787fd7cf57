// Every metric that docs/reference/metrics.md promises is written by some part of the program.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createMetrics } from './metrics.ts'
import { Metric } from './registry.ts'

const src = join(import.meta.dirname, '..')
const code = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.startsWith('metrics/'))
  .map((name) => readFileSync(join(src, name), 'utf8'))
  .join('\n')

const build = { major: '', minor: '', version: '', commit: '', treeState: '', buildDate: '' }
const names = Object.entries(createMetrics({ shown: [], build })).flatMap(([name, value]) =>
  value instanceof Metric ? [name] : [],
)

test.each(names)('%s is written', (name) => {
  // Under its name, chosen between two by name, or handed to the page that counts its answers.
  const writes = new RegExp(`\\b${name}\\.with\\(|'${name}'[^\\n]*\\]\\.with\\(|counted\\(counters\\.${name}\\b`)
  expect(writes.test(code)).toBe(true)
})
