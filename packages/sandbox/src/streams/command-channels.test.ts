import { expect, it } from 'vitest'
import { parseExecOptions } from './serve-exec.ts'
import { parseSizes } from './command-channels.ts'

it('parseSizes() reads sizes in a row, and passes over what is none', () => {
  expect(parseSizes('{"Width":80,"Height":24}\n{"Width":100,"Height":30}{"x":1}{bad}')).toEqual([
    { columns: 80, rows: 24 },
    { columns: 100, rows: 30 },
  ])
})

it('parseExecOptions() reads a query; a terminal has one output', () => {
  const query = 'command=ls&command=-l&stdin=true&stdout=true&stderr=true'
  const all = { command: ['ls', '-l'], stdin: true, stdout: true, stderr: true, tty: false }
  expect(parseExecOptions(new URLSearchParams(query))).toEqual(all)
  expect(parseExecOptions(new URLSearchParams(`${query}&tty=1`))).toEqual({ ...all, stderr: false, tty: true })
  expect(() => parseExecOptions(new URLSearchParams('stdout=1'))).toThrow('at least one command')
})
