import { describe, expect, test } from 'vitest'
import {
  chooseCommand,
  type Command,
  formatCommandHelp,
  oneOf,
  output,
  parseCommand,
  text,
  toggle,
  wholeNumber,
} from './command.ts'

const options = {
  mode: oneOf(['a', 'b'], 'Which.'),
  limit: wholeNumber('How many.', { min: 1, max: 9 }),
  name: text('NAME', 'Whose.', 'me'),
  all: toggle('Everything.', 'a'),
  output: output(['text', 'json'], 'Text, or one JSON object.'),
}
const spec: Command<typeof options> = {
  name: 'show',
  summary: '',
  about: 'Shows a thing.',
  arguments: ['[FROM]', 'TO'],
  options,
  run: async () => 0,
}
const proxyFlags = {
  config: { type: 'string' },
  v: { type: 'string', short: 'v' },
  'cluster-cidr': { type: 'string' },
} as const
const nothing = { mode: undefined, limit: undefined, name: 'me', all: false, output: 'text' }

test.each([
  [['x'], nothing, ['x'], []],
  [['-o', 'json', 'x'], { ...nothing, output: 'json' }, ['x'], []],
  [['-ojson', '--config=f', 'x'], { ...nothing, output: 'json' }, ['x'], ['--config=f']],
  [['-o=json', 'x', '--config', 'f'], { ...nothing, output: 'json' }, ['x'], ['--config=f']],
  [['--mode', 'a', '-v4', 'x', '-o', 'json', '-o', 'text'], { ...nothing, mode: 'a' }, ['x'], ['-v=4']],
  [['-v', '4', 'x', '-v=5'], nothing, ['x'], ['-v=4', '-v=5']],
  [['--cluster_cidr', '::/0', 'x'], nothing, ['x'], ['--cluster-cidr=::/0']],
  [['-a', 'x', 'y', '--limit=9'], { ...nothing, all: true, limit: 9 }, ['x', 'y'], []],
  [['--all=false', '--', '--x'], nothing, ['--x'], []],
  [['x', '--config'], nothing, ['x'], ['--config']],
])('parseCommand(%j)', (argv, values, words, flags) => {
  expect(parseCommand(spec, argv, proxyFlags)).toEqual({ isHelp: false, values, words, flags, errors: [] })
})

test.each([
  [['x', '--mode=c'], '--mode must be one of a, b, not "c"'],
  [['x', '--limit=0'], '--limit must be from 1 to 9, not "0"'],
  [['x', '--all=maybe'], '--all must be true or false, not "maybe"'],
  [['x', '-o'], '--output needs a value: --output text|json'],
  [['x', '--limt=1'], 'unknown option --limt (is --limit meant?)'],
  [['x', '--zzz'], 'unknown option --zzz; show takes --mode, --limit, --name, --all, --output, the flags of the proxy'],
  [['x', '-xyz'], 'unknown option -x; show takes --mode, --limit, --name, --all, --output, the flags of the proxy'],
  [['x', '--confg'], 'unknown option --confg (is --config meant?)'],
  [[], 'show needs TO: kube-proxy show [FROM] TO'],
  [['x', 'y', 'z'], 'show takes [FROM] TO, but was given "z"'],
])('parseCommand(%j) is refused', (argv, error) => {
  expect(parseCommand(spec, argv, proxyFlags).errors).toEqual([error])
})

describe('a group', () => {
  const commands = ['sandbox up', 'sandbox down'].map((name) => ({ ...spec, name }))
  const group = { name: 'sandbox', about: '', commands }

  test.each([
    [[], 'sandbox up', []],
    [['--name', 'down'], 'sandbox up', ['--name', 'down']],
    [['--name', 'x', 'down', '-a'], 'sandbox down', ['--name', 'x', '-a']],
    [['--', 'down'], 'sandbox up', ['--', 'down']],
  ])('chooseCommand(%j) is %s', (argv, name, rest) => {
    const { command, argv: own } = chooseCommand(group, argv)
    expect([command.name, own]).toEqual([name, rest])
  })

  test.each([
    [['dwon'], 'unknown command sandbox dwon (is down meant?)'],
    [['fly'], 'unknown command sandbox fly; commands: up, down'],
  ])('chooseCommand(%j) is refused', (argv, message) => {
    expect(() => chooseCommand(group, argv)).toThrow(message)
  })
})

test('formatCommandHelp() has a column for each part', () => {
  const examples = [['show x', 'the x'], ['show y z']] as const
  expect(formatCommandHelp({ ...spec, examples, notes: ['Exit status: 0.'] })).toBe(`\
Shows a thing.

Usage:
  kube-proxy show [FROM] TO [options]

Examples:
  kube-proxy show x    # the x
  kube-proxy show y z

Options:
      --mode a|b          Which.
      --limit N           How many.
      --name NAME         Whose. (default me)
  -a, --all               Everything.
  -o, --output text|json  Text, or one JSON object. (default text)
  -h, --help              Print this text.

Exit status: 0.
`)
})
