import { expect, test } from 'vitest'
import { formatNotes, sectionOf } from './release/notes.mjs'

const changelog = '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-19)\n\n### Fixed\n\n- One.\n\n## 0.2\n\n- Two.\n'

test('sectionOf() is what stands below the heading of a version', () => {
  expect(sectionOf(changelog, '0.2.0')).toBe('### Fixed\n\n- One.')
  expect(sectionOf(changelog, '0.2')).toBe('- Two.')
})

test('sectionOf() refuses a version of which nothing is said', () => {
  expect(() => sectionOf(changelog, '0.3.0')).toThrow('has no section "## 0.3.0"')
  expect(() => sectionOf(changelog, 'Unreleased')).toThrow('is empty')
})

test('formatNotes() says how to verify signatures where there are some', () => {
  const given = {
    version: '0.2.0',
    section: '- One.',
    image: 'a/b',
    digest: 'sha256:1',
    assets: [{ name: 'x', what: 'y' }],
  }
  expect(formatNotes({ ...given, isSigned: true })).toContain('cosign verify-blob')
  expect(formatNotes({ ...given, isSigned: false })).not.toContain('cosign')
  expect(formatNotes({ ...given, isSigned: false })).toContain('| `x` | y |')
})
