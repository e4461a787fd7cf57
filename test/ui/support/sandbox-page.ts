// A sandbox with its page, for a file of tests: on a machine of its own.

import type { Browser } from 'playwright-core'
import { eventually } from '../../support/eventually.ts'
import { enterMachine, makeRoot, removeRoot } from '../../sandbox/support/machine.ts'
import { SandboxProcess } from '../../sandbox/support/sandbox-process.ts'
import { launchBrowser } from './browser.ts'

export interface SandboxPage extends AsyncDisposable {
  readonly sandbox: SandboxProcess
  readonly browser: Browser
  readonly url: string
}

export async function startSandboxPage(...args: readonly string[]): Promise<SandboxPage> {
  enterMachine()
  const root = makeRoot()
  const [sandbox, browser] = await Promise.all([SandboxProcess.start(root, ...args), launchBrowser()])
  const url = /^ +(http:\/\/127\.0\.0\.1:\d+\/\?token=\S+)$/m.exec(sandbox.output)?.[1]
  if (url === undefined) throw new Error(`The sandbox prints no URL: ${sandbox.output}`)
  return {
    sandbox,
    browser,
    url,
    async [Symbol.asyncDispose]() {
      await browser.close()
      await sandbox[Symbol.asyncDispose]()
      removeRoot(root)
    },
  }
}

/** What the kernel of a node says: `nft list ...`, `iptables-save`. */
export function askNode(sandbox: SandboxProcess, node: string, ...command: readonly string[]): string {
  const { stdout, stderr, status } = sandbox.run('exec', node, '--', ...command)
  if (status !== 0) throw new Error(`${command.join(' ')} on ${node}: ${stderr}`)
  return stdout
}

/** Waits until the text that a command prints on a node has something, or has it no more. */
export async function eventuallyOnNode(
  sandbox: SandboxProcess,
  node: string,
  command: readonly string[],
  isRight: (text: string) => boolean,
): Promise<void> {
  await eventually(
    `${command.join(' ')} on ${node} prints what it should`,
    () => {
      const text = askNode(sandbox, node, ...command)
      return isRight(text) ? undefined : text
    },
    { withinMs: 10_000, everyMs: 200 },
  )
}
