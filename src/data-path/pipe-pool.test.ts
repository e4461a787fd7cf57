import { expect, test } from 'vitest'
import { readdirSync, readlinkSync } from 'node:fs'
import { PipePool } from './pipe-pool.ts'

/** What a file descriptor of this process is, by a name that no other has; undefined when it is closed. */
function fileAt(fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return undefined
  }
}

test('pipes leave a quarter of the file descriptors to connections', () => {
  const highest = Math.max(...readdirSync('/proc/self/fd').map(Number))
  const pool = new PipePool(2 * highest + 16)
  const pipe = pool.take()
  expect(pipe).toBeDefined()
  const { readFd, writeFd } = pipe!
  const file = fileAt(readFd)
  expect(fileAt(writeFd)).toBe(file)
  const short = new PipePool(Math.floor((pipe!.writeFd * 4) / 3))
  expect(short.take()).toBeUndefined()
  pool.giveBack(pipe!)
  pool.dispose()
  // Other tests of this process may have got these numbers by now.
  expect([fileAt(readFd), fileAt(writeFd)]).not.toContain(file)
})
