import { expect, test } from 'vitest'
import { lastError } from './proxy-process.ts'

test.each([
  [
    'the last error of the log',
    'I1115 08:15:31 1 main.go:1] "Starting"\nE1115 08:15:31 1 main.go:1] "Failed" err="Cannot use \\"x\\""\n',
    'Cannot use "x"',
  ],
  ['a complaint about flags', 'kube-proxy: unknown flag --bogus\nSee kube-proxy --help\n', 'unknown flag --bogus'],
  ['the last line of anything else', 'a\nout of memory\n', 'out of memory'],
])('lastError() finds %s', (_, log, error) => {
  expect(lastError(log)).toBe(error)
})
