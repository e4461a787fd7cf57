import { expect, test } from 'vitest'
import { parseFlowLogTarget } from './flow-log-target.ts'

test('a file, a collector, or nothing', () => {
  expect(parseFlowLogTarget('')).toEqual({ kind: 'none' })
  expect(parseFlowLogTarget('/var/log/flows.jsonl')).toEqual({ kind: 'file', path: '/var/log/flows.jsonl' })
  const urlOf = (text: string) => {
    const target = parseFlowLogTarget(text)
    return target.kind === 'otlp' ? target.url.href : target.kind
  }
  expect(urlOf('otlp(http://127.0.0.1:4318)')).toBe('http://127.0.0.1:4318/v1/logs')
  expect(urlOf('otlp(https://[fd00::1]/otlp/logs)')).toBe('https://[fd00::1]/otlp/logs')
})

test.each(['flows.jsonl', '/var/log/', 'otlp', 'otlp()', 'otlp(127.0.0.1:4318)', 'otlp(ftp://a)', 'http://a:4318'])(
  '%s is none of them',
  (text) => {
    expect(() => parseFlowLogTarget(text)).toThrow('must be the absolute path of a file, or otlp(http://HOST:PORT)')
  },
)

test('a password in the URL could be read by all', () => {
  expect(() => parseFlowLogTarget('otlp(https://me:secret@collector:4318)')).toThrow('must have no password')
})
