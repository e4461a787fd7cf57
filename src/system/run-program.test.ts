import { describe, expect, it } from 'vitest'
import { runProgram } from './run-program.ts'

describe('runProgram()', () => {
  it('gives what a program prints, and its exit code', async () => {
    const result = await runProgram('sh', ['-c', 'cat; echo oops >&2; exit 3'], { input: ['a', 'b'] })
    expect(result).toMatchObject({ code: 3, stdout: 'ab', stderr: 'oops\n' })
  })

  it('says that a program is missing', async () => {
    expect(await runProgram('no-such-program', [])).toMatchObject({ code: 'missing' })
  })

  it('rejects when the input cannot be made', async () => {
    function* input(): Generator<string> {
      yield 'a'
      throw new Error('no more')
    }
    await expect(runProgram('cat', [], { input: input() })).rejects.toThrow('no more')
  })
})
