import { expect, test } from 'vitest'
import { createLogger, type LogSettings } from './log.ts'
import { jsonFormat } from './log-json.ts'
import { textFormat } from './log-text.ts'
import { verbosityByFile } from './log-vmodule.ts'

// 2024-11-15 04:25:32.123456 in whatever zone the test runs in.
const time = new Date(2024, 10, 15, 4, 25, 32, 123).getTime() + 0.4565

function recorder(settings: Partial<LogSettings> = {}) {
  const lines: string[] = []
  const all: LogSettings = {
    format: textFormat({ pid: 12345 }),
    sink: (_severity, line) => lines.push(line),
    verbosity: 0,
    now: () => time,
    ...settings,
  }
  return { lines, settings: all, log: createLogger(all) }
}

const withoutPlace = (line: string | undefined) => line?.replace(/log\.test\.ts:\d+/, 'FILE:1')

test('Logger.info() prints a line as klog does', () => {
  const { log, lines } = recorder()
  log.info('Synced', { services: 3, mode: 'nftables', ok: true, ports: ['a', 'b'], nothing: null })
  expect(lines.map(withoutPlace)).toEqual([
    'I1115 04:25:32.123456   12345 FILE:1] "Synced" services=3 mode="nftables" ok=true ports=["a","b"] nothing=<nil>\n',
  ])
})

test('Logger.warn() and Logger.error() print at any verbosity, with their letters', () => {
  const { log, lines } = recorder()
  log.warn('Careful')
  log.error(new Error('no route', { cause: new Error('ENETUNREACH') }), 'Cannot connect', { host: 'x' })
  expect(lines.map(withoutPlace)).toEqual([
    'W1115 04:25:32.123456   12345 FILE:1] "Careful"\n',
    'E1115 04:25:32.123456   12345 FILE:1] "Cannot connect" err="no route: ENETUNREACH" host="x"\n',
  ])
})

test('Logger.info() names the file and line that called it', () => {
  const { log, lines } = recorder()
  const lineOf = (stack: string) => /log\.test\.ts:(\d+)/.exec(stack)?.[1]
  const here = lineOf(new Error('here').stack ?? '')
  log.info('next line')
  expect(Number(lineOf(lines[0] ?? ''))).toBe(Number(here) + 1)
})

test('textFormat() keeps values of several lines readable and cannot be made to start a line of its own', () => {
  const { log, lines } = recorder({ format: textFormat({ pid: 1, skipHeaders: true }) })
  log.info('a\nE1115 forged', { text: 'one\ntwo\n', key: 'x\u001b"' })
  expect(lines).toEqual(['"a\\nE1115 forged" text=<\n\tone\n\ttwo\n > key="x\\u001b\\""\n'])
})

test('textFormat() and jsonFormat() escape what a terminal would act upon, also in values of several lines', () => {
  const nasty = 'one\u001b[2J\rE1115 forged\u0085x\u2028y\u009b31m\ntwo\u0007\ttab'
  for (const format of [textFormat({ pid: 1, skipHeaders: true }), jsonFormat]) {
    const { log, lines } = recorder({ format })
    log.info(nasty, { nasty, list: [nasty], one: nasty.replaceAll('\n', '') })
    log.error(new Error(nasty), nasty)
    // oxlint-disable-next-line no-control-regex
    for (const line of lines) expect(line).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]/)
    expect(lines.join('')).toContain('\\u001b[2J')
  }
})

test('Logger.v() prints at a verbosity high enough and nothing below it', () => {
  const { log, lines, settings } = recorder({ verbosity: 2, format: jsonFormat })
  log.v(2)?.info('seen')
  log.v(3)?.info('not seen')
  settings.verbosity = 3
  log.v(3)?.info('seen after the verbosity was raised')
  expect(lines.map((line) => (JSON.parse(line) as { v: number; msg: string }).v)).toEqual([2, 3])
})

test('Logger.v() does not evaluate the values of a line that is not printed', () => {
  const { log } = recorder()
  let evaluated = 0
  log.v(5)?.info('never', { value: ++evaluated })
  expect(evaluated).toBe(0)
})

test('Logger.v() obeys --vmodule for files that match, and -v for the others', () => {
  const { log, lines, settings } = recorder({ verbosityOf: verbosityByFile([{ filePattern: 'log.t*', verbosity: 4 }]) })
  log.v(4)?.info('seen')
  log.v(5)?.info('not seen')
  settings.verbosityOf = verbosityByFile([{ filePattern: 'other', verbosity: 4 }])
  log.v(4)?.info('not seen either')
  expect(lines).toHaveLength(1)
})

test.each([
  ['proxy*', 'proxy-run.js', 3],
  ['proxy*', 'a-proxy.js', undefined],
  ['r?n', 'run.js', 3],
  ['[a-r]un', 'run.js', 3],
  ['[^a-q]un', 'run.js', 3],
  ['a.b', 'axb.js', undefined],
  ['[z-a]', 'z.js', undefined],
])('verbosityByFile(%s) of %s is %s', (filePattern, file, verbosity) => {
  expect(verbosityByFile([{ filePattern, verbosity: 3 }])({ path: `/x/${file}`, file, line: 1 })).toBe(verbosity)
})

test('Logger.withName() and Logger.withValues() mark every line of the derived logger', () => {
  const { log, lines } = recorder({ format: textFormat({ pid: 1, skipHeaders: true }) })
  log.withName('proxy').withName('nft').withValues({ family: 'ip' }).info('Synced', { took: 1.5 })
  log.info('plain')
  expect(lines).toEqual(['"Synced" logger="proxy.nft" family="ip" took=1.5\n', '"plain"\n'])
})

test('jsonFormat() prints one object per line with ts, caller, msg, v and the values', () => {
  const { log, lines } = recorder({ format: jsonFormat })
  log.withName('a').info('Hello', { n: 1n, set: new Set(['x']), msg: 'kept apart' })
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>
  expect(line).toMatchObject({ logger: 'a', msg: 'Hello', v: 0, n: '1', set: ['x'], msg_: 'kept apart' })
  expect(line['caller']).toMatch(/^lib\/log\.test\.ts:\d+$/)
  expect(line['ts']).toBeCloseTo(time, 3)
})

test('jsonFormat() prints errors with err and without v', () => {
  const { log, lines } = recorder({ format: jsonFormat })
  log.error(new Error('boom'), 'Failed', { attempt: 2 })
  const line = JSON.parse(lines[0] ?? '') as Record<string, unknown>
  expect(line).toMatchObject({ msg: 'Failed', err: 'boom', attempt: 2 })
  expect(line).not.toHaveProperty('v')
})

test('Logger.info() survives values that cannot be printed', () => {
  const { log, lines } = recorder({ format: textFormat({ pid: 1, skipHeaders: true }) })
  const circular: Record<string, unknown> = {}
  circular['self'] = circular
  log.info('odd', { circular, symbol: Symbol('s'), fn: undefined })
  expect(lines).toEqual(['"odd" circular="[object Object]" symbol=Symbol(s) fn=<nil>\n'])
})
