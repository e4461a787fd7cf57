import { expect, test } from 'vitest'
import { answerTo, echoOf } from './answer.ts'

const identity = {
  message: 'viola',
  hostname: 'whoami-8fpqp',
  namespace: 'default',
  node: 'node-1',
  podIPs: ['10.244.1.2'],
  env: { MESSAGE: 'viola', A: 'b=c' },
}
const peer = { clientIP: '10.244.2.7', clientPort: 4711, serverIP: '10.244.1.2', serverPort: 3000 }

test.each([
  ['/', 'viola from whoami-8fpqp\n'],
  ['/healthz', 'viola from whoami-8fpqp\n'],
  ['/?client', 'viola from whoami-8fpqp\n'],
  ['/client', '10.244.2.7\n'],
  ['/client?x=1', '10.244.2.7\n'],
  ['/env', 'MESSAGE=viola\nA=b=c\n'],
])('answerTo(%j)', (path, body) => {
  expect(answerTo(path, identity, peer)).toEqual({ type: 'text/plain', body })
})

test('answerTo("/json") has all of it', () => {
  const { type, body } = answerTo('/json', identity, peer)
  expect(type).toBe('application/json')
  expect(JSON.parse(body)).toEqual({ ...identity, ...peer })
})

test('echoOf() sends back what came, byte by byte, behind two lines', () => {
  const payload = Uint8Array.of(0, 255, 10, 128)
  const echo = echoOf(payload, identity, peer)
  expect(echo.subarray(0, -4).toString()).toBe('viola from whoami-8fpqp\nclient 10.244.2.7 port 4711 to port 3000\n')
  expect([...echo.subarray(-4)]).toEqual([...payload])
})
