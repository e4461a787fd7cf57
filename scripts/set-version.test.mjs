import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { places, versionsIn } from './release/set-version.mjs'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

test.each(places)('%s has the version of package.json', (...place) => {
  const found = versionsIn(place)
  expect(found.length).toBeGreaterThan(0)
  expect(new Set(found)).toEqual(new Set([version]))
})
