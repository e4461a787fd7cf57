import { expect, it } from 'vitest'
import { formatRoute, parseRoute } from './route.ts'

it('an address of the page says what it shows', () => {
  expect(parseRoute('#/changes?service=default%2Fwhoami')).toEqual({
    view: 'changes',
    query: { service: 'default/whoami' },
  })
  expect(parseRoute(formatRoute('packet', { from: 'a/b c', to: undefined }))).toEqual({
    view: 'packet',
    query: { from: 'a/b c' },
  })
})

it('an address that says nothing, or nonsense, is the map', () => {
  expect([parseRoute('').view, parseRoute('#/constructor').view, parseRoute('#main').view]).toEqual([
    'map',
    'map',
    'map',
  ])
})
