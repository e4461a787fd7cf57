import { expect, test } from 'vitest'
import { parseCheckArguments } from './check.ts'

test.each([
  [['-o', 'json'], 'json', []],
  [['-ojson', '--config=x'], 'json', ['--config=x']],
  [['--config', 'x', '--output=json'], 'json', ['--config', 'x']],
  [['--output', 'text', '-v=2'], 'text', ['-v=2']],
  [['--proxy-mode=ipvs'], 'text', ['--proxy-mode=ipvs']],
])('%j', (argv, output, flags) => {
  expect(parseCheckArguments(argv)).toEqual({ output, flags })
})

test.each([[['-o', 'yaml']], [['-o']]])('%j is refused', (argv) => {
  expect(parseCheckArguments(argv).error).toContain('--output must be text or json')
})
