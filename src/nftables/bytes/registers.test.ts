import { describe, expect, it } from 'vitest'
import { fromWireRegister, toWireRegister } from './registers.ts'

describe('registers', () => {
  it.each([
    [0, 1],
    [1, 9],
    [3, 11],
    [4, 2],
    [5, 13],
    [8, 3],
    [12, 4],
    [15, 23],
  ])('word %d is register %d, as nft writes it', (word, register) => {
    expect(toWireRegister(word)).toBe(register)
  })

  it('fromWireRegister() is the inverse, for either number that a word has', () => {
    for (let word = 0; word < 16; word++) {
      expect(fromWireRegister(toWireRegister(word))).toBe(word)
      expect(fromWireRegister(8 + word)).toBe(word)
    }
  })

  it('fromWireRegister() gives undefined for the verdict register and for numbers that do not exist', () => {
    for (const register of [0, 5, 7, 24, 0xffffffff]) expect(fromWireRegister(register)).toBeUndefined()
  })
})
