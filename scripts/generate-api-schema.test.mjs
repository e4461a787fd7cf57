import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

// What it is generated from, a Kubernetes source tree, is no part of this repository.
test('the schema of the API is as it was generated, not edited by hand', () => {
  const text = readFileSync(new URL('../packages/sandbox/src/apiserver/schema/messages.ts', import.meta.url), 'utf8')
  const [, checksum] = /^\/\/ sha256 ([0-9a-f]{64})$/m.exec(text)
  const [, body] = /`\n([\s\S]*)\n`\n$/.exec(text)
  expect(createHash('sha256').update(body).digest('hex')).toBe(checksum)
})
