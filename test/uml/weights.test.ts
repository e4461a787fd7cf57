import { describe } from 'vitest'
import { testWeights } from '../e2e/weights.suite.ts'

describe('weights', () => {
  testWeights({ mode: 'ipvs', chosen: 'in turn' })
})
