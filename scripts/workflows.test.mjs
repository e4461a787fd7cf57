// The workflows of the forge: its own parser accepts them, and nothing in them changes by itself.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } from '@actions/workflow-parser'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const folder = join(import.meta.dirname, '..', '.github', 'workflows')
const files = readdirSync(folder)

/** What the forge would say about it. */
async function complaints(name, content) {
  const { context, value } = parseWorkflow({ name, content }, new NoOperationTraceWriter())
  const found = context.errors.getErrors().map(({ message }) => message)
  if (value === undefined || found.length > 0) return found
  const template = await convertWorkflowTemplate(context, value)
  return [...context.errors.getErrors(), ...(template.errors ?? [])].map(({ message, Message }) => message ?? Message)
}

test.each(files)('%s is a workflow', async (name) => {
  expect(await complaints(name, readFileSync(join(folder, name), 'utf8'))).toEqual([])
})

test('the parser finds what is wrong', async () => {
  const text = readFileSync(join(folder, 'ci.yaml'), 'utf8')
  expect(await complaints('ci.yaml', text.replace('runs-on:', 'run-on:'))).not.toEqual([])
  expect(await complaints('ci.yaml', text.replace('matrix.runner }}', 'matrix.runner }'))).not.toEqual([])
  expect(await complaints('ci.yaml', text.replace('${{ matrix.runner }}', '${{ marix.runner }}'))).not.toEqual([])
})

test.each(files)('%s names actions by commit, and gives no step what it does not need', (name) => {
  const { permissions, jobs } = parse(readFileSync(join(folder, name), 'utf8'))
  expect(permissions).toEqual({ contents: 'read' })
  for (const { steps = [], uses } of Object.values(jobs)) {
    if (uses !== undefined) expect(uses).toMatch(/^\.\/\.github\/workflows\//)
    for (const step of steps) {
      if (step.uses !== undefined) expect(step.uses).toMatch(/^actions\/[a-z-]+@[0-9a-f]{40}$/)
      // A name of a branch or a tag can be anything: it comes as a variable of the shell.
      expect(step.run ?? '').not.toContain('${{')
    }
  }
})
