import { messageOf } from '../lib/errors.ts'
import { askForMode } from '../sandbox/instance/control.ts'
import { findInstance } from './sandbox-instances.ts'

/** Starts the proxy of a node in another mode, and waits until it serves. */
export async function runSandboxMode(command: {
  readonly name: string | undefined
  readonly node: string
  readonly mode: string
}): Promise<number> {
  const { node, mode } = command
  const folder = findInstance(command.name)
  await askForMode(folder.controlSocket, node, mode).catch((error: unknown) => {
    throw new Error(`Cannot run ${node} in mode ${mode}: ${messageOf(error)}`, { cause: error })
  })
  process.stdout.write(`The proxy of ${node} runs in mode ${mode}.\n`)
  return 0
}
