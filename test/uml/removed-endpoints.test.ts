import { describe } from 'vitest'
import { testRemovedEndpoints } from '../e2e/removed-endpoints.suite.ts'

describe('connections to removed endpoints in ipvs mode', () => {
  testRemovedEndpoints('ipvs')
})
