import { expect, test } from 'vitest'
import { isTaken, parseListeners } from './parse-listeners.ts'

const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2809 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 00000000:2810 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0 100 0 0 10 0
   2: 0100007F:1F90 0100007F:C000 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 100 0 0 10 0
`
const tcp6 = `   0: 00000000000000000000000001000000:2809 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 4 1
`

test('what listens is reported from what is connected, and blocks the addresses that it blocks', () => {
  const listeners = parseListeners(tcp)
  expect(listeners.map(({ port }) => port)).toEqual([10249, 10256])
  expect(isTaken(listeners, '127.0.0.1', 10249)).toBe(true)
  expect(isTaken(listeners, '0.0.0.0', 10249)).toBe(true)
  expect(isTaken(listeners, '10.0.0.1', 10249)).toBe(false)
  expect(isTaken(listeners, '10.0.0.1', 10256)).toBe(true)
  expect(isTaken(listeners, '127.0.0.1', 8080)).toBe(false)
  expect(isTaken(parseListeners(tcp6), '::1', 10249)).toBe(true)
  expect(isTaken(parseListeners(tcp6), '::2', 10249)).toBe(false)
})

test('connections that wait to be accepted are counted', () => {
  expect(parseListeners(tcp.replace('00000000:00000000', '00000000:0000000B')).map(({ waiting }) => waiting)).toEqual([
    11, 0,
  ])
})
