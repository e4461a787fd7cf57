import { expect, test } from 'vitest'
import { leftOutWords } from './left-out.ts'

test('says what is not shown, and nothing where all is', () => {
  expect(leftOutWords({ services: 0, pods: 0, backends: 0 })).toBe('')
  expect(leftOutWords({ services: 1, pods: 20, backends: 0 })).toBe(
    'Not shown, for there are too many: 1 service, 20 pods.',
  )
  expect(leftOutWords({ services: 0, pods: 0, backends: 3 })).toBe(
    'Not shown, for there are too many: 3 endpoints of the services that are.',
  )
})
