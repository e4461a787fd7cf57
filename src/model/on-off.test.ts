import { expect, test } from 'vitest'
import { parseOnOff } from './on-off.ts'

const KEY = 'service.kube-proxy-ts.io/connect-retry'

test.for([
  [undefined, undefined],
  [{}, undefined],
  [{ [KEY]: 'on' }, true],
  [{ [KEY]: 'off' }, false],
] as const)('parseOnOff(%j) is %j', ([annotations, wanted]) => {
  const problems: string[] = []
  expect(parseOnOff(annotations, KEY, problems)).toBe(wanted)
  expect(problems).toEqual([])
})

test('parseOnOff() of another word is a problem that names it, and as if it were not there', () => {
  const problems: string[] = []
  expect(parseOnOff({ [KEY]: 'true' }, KEY, problems)).toBeUndefined()
  expect(problems).toEqual([`annotation ${KEY}: "true" is ignored, it must be "on" or "off"`])
})
