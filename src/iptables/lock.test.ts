import { expect, it } from 'vitest'
import { findHolder } from './lock.ts'

const locks = `1: OFDLCK ADVISORY  WRITE -1 fe:00:2147156 0 EOF
2: FLOCK  ADVISORY  WRITE 20023 fe:00:2147397 0 EOF
2: -> FLOCK  ADVISORY  WRITE 20024 fe:00:2147397 0 EOF
`

it('findHolder() names the process that holds the lock, not one that waits for it', () => {
  expect(findHolder(locks, 2147397)).toBe(20023)
})

it('findHolder() is undefined when no process does', () => {
  expect(findHolder(locks, 147397)).toBeUndefined()
  expect(findHolder('', 2147397)).toBeUndefined()
})
