// Every mode that exists, in a sandbox each. A mode that this kernel cannot run is skipped with the reason it gives.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { modeNames } from '../../../src/modes/all.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './machine.ts'
import { SandboxProcess } from './sandbox-process.ts'

export interface ModeTests {
  /** Further flags of the sandbox. */
  readonly flags: readonly string[]
  /** Made in each sandbox before its tests. */
  readonly prepare: (sandbox: SandboxProcess) => Promise<void>
  readonly define: (test: ModeTest, mode: string) => void
}

/** Like test(), with the sandbox of the mode. */
export type ModeTest = (name: string, body: (sandbox: SandboxProcess) => Promise<void>) => void

/** SANDBOX_MODES=ipvs picks some of them. */
export const modes = process.env['SANDBOX_MODES']?.split(',') ?? modeNames

export function describeModes({ flags, prepare, define }: ModeTests): void {
  enterMachine()
  const root = makeRoot()
  afterAll(() => removeRoot(root))
  for (const mode of modes) {
    describe(`mode ${mode}`, () => {
      let sandbox: SandboxProcess | undefined
      let obstacle = ''
      beforeAll(async () => {
        try {
          sandbox = await SandboxProcess.start(root, '--proxy-mode', mode, ...flags)
        } catch (error) {
          obstacle = /Cannot use [^\n]+/.exec(String(error))?.[0] ?? ''
          if (obstacle === '') throw error
          return
        }
        await prepare(sandbox)
      })
      afterAll(async () => {
        await sandbox?.[Symbol.asyncDispose]()
        expect(leftovers(root)).toEqual([])
      })
      define((name, body) => {
        test(name, async ({ skip }) => {
          if (sandbox === undefined) return skip(obstacle)
          await body(sandbox)
        })
      }, mode)
    })
  }
}
