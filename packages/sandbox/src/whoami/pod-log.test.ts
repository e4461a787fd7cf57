import { expect, test } from 'vitest'
import { formatLogLine, parseLogQuery, pickLines, PodLog } from './pod-log.ts'

const lines = [1000, 2000, 3000].map((timeMs) => ({ timeMs, text: `at ${timeMs}` }))

function query(text: string): ReturnType<typeof parseLogQuery> {
  return parseLogQuery(new URLSearchParams(text), 4000)
}

test.each([
  ['', [1000, 2000, 3000]],
  ['tailLines=1', [3000]],
  ['tailLines=0', []],
  ['tailLines=9', [1000, 2000, 3000]],
  ['sinceSeconds=2', [2000, 3000]],
  ['sinceTime=1970-01-01T00:00:03Z', [3000]],
  ['sinceSeconds=2&tailLines=1', [3000]],
])('pickLines() for %j', (text, times) => {
  expect(pickLines(lines, query(text)).map(({ timeMs }) => timeMs)).toEqual(times)
})

test('formatLogLine() has a timestamp on request', () => {
  expect(formatLogLine(lines[0]!, query(''))).toBe('at 1000\n')
  expect(formatLogLine(lines[0]!, query('timestamps=true'))).toBe('1970-01-01T00:00:01.000Z at 1000\n')
})

test('PodLog keeps the last thousand lines and sends subscribers new ones, until it is closed', () => {
  const log = new PodLog()
  const received: string[] = []
  for (let i = 0; i < 1200; i++) log.append(`${i}`)
  log.follow(
    ({ text }) => received.push(text),
    () => received.push('end'),
  )
  const stop = log.follow(
    () => received.push('again'),
    () => {},
  )
  stop()
  log.append('new')
  log.close()
  log.append('late')
  expect(log.lines()).toHaveLength(1000)
  expect(log.lines()[0]!.text).toBe('202')
  expect(received).toEqual(['new', 'end'])
})
