import { expect, test } from 'vitest'
import { formatArchive } from './archive.ts'

test('a header, the content and what fills the block, then two empty blocks', () => {
  const archive = formatArchive([{ path: 'a/b.txt', content: Buffer.from('hello') }], 1_700_000_000.9)
  expect(archive.length).toBe(4 * 512)
  const text = (at: number, length: number) => archive.toString('latin1', at, at + length).replace(/\0.*$/s, '')
  expect([text(0, 100), text(100, 8), text(124, 12), text(136, 12)]).toEqual([
    'a/b.txt',
    '0000600',
    '00000000005',
    (1_700_000_000).toString(8).padStart(11, '0'),
  ])
  expect(text(257, 6)).toBe('ustar')
  expect(text(512, 5)).toBe('hello')
  // The sum of the header, in which the sum itself counts as blanks.
  const header = Buffer.from(archive.subarray(0, 512))
  header.fill(' ', 148, 156)
  expect(parseInt(text(148, 6), 8)).toBe(header.reduce((sum, byte) => sum + byte, 0))
})

test('a name for which a header has no room is refused', () => {
  expect(() => formatArchive([{ path: 'x'.repeat(101), content: Buffer.alloc(0) }], 0)).toThrow('longer than 100 bytes')
})
