import { expect, test } from 'vitest'
import { parseConnectRetry } from './connect-retry.ts'

test.for([
  [undefined, undefined],
  ['on', true],
  ['off', false],
] as const)('parseConnectRetry(%j) is %j', ([text, wanted]) => {
  const problems: string[] = []
  expect(parseConnectRetry(text, problems)).toBe(wanted)
  expect(problems).toEqual([])
})

test('parseConnectRetry() of another word is a problem that names it, and as if it were not there', () => {
  const problems: string[] = []
  expect(parseConnectRetry('true', problems)).toBeUndefined()
  expect(problems).toEqual([
    'annotation service.kube-proxy-ts.io/connect-retry: "true" is ignored, it must be "on" or "off"',
  ])
})
