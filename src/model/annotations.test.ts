import { expect, test } from 'vitest'
import { readAnnotations, sameAnnotations } from './annotations.ts'
import { CONNECT_RETRY_ANNOTATION } from './connect-retry.ts'
import { WEIGHTS_ANNOTATION } from './weights.ts'

function read(annotations: Record<string, string> | undefined) {
  const problems: string[] = []
  return { read: readAnnotations(annotations, problems), problems }
}

test.each([undefined, {}, { 'service.example.com/other': 'on' }])('readAnnotations() of %j has nothing', (none) => {
  expect(read(none)).toEqual({ read: {}, problems: [] })
})

test('readAnnotations() has the values, and the texts as they were written', () => {
  const annotations = { [CONNECT_RETRY_ANNOTATION]: 'off', [WEIGHTS_ANNOTATION]: '*=2' }
  const { read: values, problems } = read({ ...annotations, other: 'x' })
  expect(values).toMatchObject({ connectRetry: false, weights: { others: 2 }, texts: annotations })
  expect(problems).toEqual([])
})

test('readAnnotations() of another word says what is allowed, and goes on as without it', () => {
  const { read: values, problems } = read({ [CONNECT_RETRY_ANNOTATION]: 'true' })
  expect(values.connectRetry).toBeUndefined()
  expect(problems).toEqual([`annotation ${CONNECT_RETRY_ANNOTATION}: "true" is ignored, it must be "on" or "off"`])
})

test('readAnnotations() tells of a hundred thousand bad parts in one line', () => {
  const { problems } = read({ [WEIGHTS_ANNOTATION]: Array.from({ length: 100_000 }, (_, i) => `x${i}`).join(',') })
  expect(problems).toHaveLength(1)
  expect(problems[0]).toMatch(/\(and 99999 more\)$/)
})

test('sameAnnotations() compares what was written', () => {
  const [on, off, none] = ['on', 'off', undefined].map(
    (text) => read(text === undefined ? undefined : { [CONNECT_RETRY_ANNOTATION]: text }).read,
  )
  expect(sameAnnotations(on!, read({ [CONNECT_RETRY_ANNOTATION]: 'on' }).read)).toBe(true)
  expect([sameAnnotations(on!, off!), sameAnnotations(on!, none!), sameAnnotations(none!, on!)]).toEqual([
    false,
    false,
    false,
  ])
})
