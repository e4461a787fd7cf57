import { expect, test } from 'vitest'
import { formatBeyond } from './beyond-base.ts'

const table = (...blocks: string[]) => `table ip x {\n  comment "y"\n\n${blocks.join('\n\n')}\n}\n`
const set = (name: string, ...lines: string[]) =>
  [`  set ${name} {`, ...lines.map((line) => `    ${line}`), '  }'].join('\n')

test('formatBeyond() tells what is new, what is different and what is missing', () => {
  const base = table(set('a', 'type t'), set('b', 'type t'), set('c', 'type t'))
  const other = table(set('a', 'type t'), set('b', 'type t', 'elements = { 1 }'), set('d', 'type t'))
  expect(formatBeyond(other, base)).toBe(
    `table ip x {\n  # without set c\n\n${set('b', 'type t', 'elements = { 1 }')}\n\n${set('d', 'type t')}\n}\n`,
  )
  expect(formatBeyond(base, base)).toBe('table ip x {\n\n}\n')
})
