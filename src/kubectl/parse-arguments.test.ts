import { expect, test } from 'vitest'
import { parseArguments } from './parse-arguments.ts'

test('options of the plugin stand anywhere; the others go to the proxy in their order', () => {
  const { command, words, options } = parseArguments(
    'explain --node node-1 client web:80 --via nodePort -n proxies -o json --context=test'.split(' '),
  )
  expect(command).toBe('explain')
  expect(words).toEqual(['client', 'web:80', '--via', 'nodePort', '-o', 'json'])
  expect(options).toMatchObject({ node: 'node-1', namespace: 'proxies', context: 'test', timeoutMs: 30_000 })
})

test('what is behind -- is the proxy’s', () => {
  const { words, options } = parseArguments(['doctor', '--timeout=5', '--', '--node', 'x', '--help'])
  expect(words).toEqual(['--node', 'x', '--help'])
  expect(options).toMatchObject({ node: undefined, timeoutMs: 5000, isHelp: false })
})

test('an option without its value, and one before the command, are refused', () => {
  expect(() => parseArguments(['status', '--node'])).toThrow('--node needs a value')
  expect(() => parseArguments(['status', '--timeout', 'soon'])).toThrow(
    '--timeout must be a number of seconds, not "soon"',
  )
  expect(() => parseArguments(['--verbose', 'status'])).toThrow('unknown option --verbose; the command comes first')
})

test('help', () => {
  expect(parseArguments(['status', '-h']).options.isHelp).toBe(true)
  expect(parseArguments([]).command).toBeUndefined()
})
