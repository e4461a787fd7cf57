// Commands that change a running sandbox.

import { messageOf } from '../../../../src/lib/errors.ts'
import { askForApiServer, askForMode } from '../instance/control.ts'
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

/** Takes the API server away from all its clients, or gives it back. */
export async function runSandboxApiServer(command: {
  readonly name: string | undefined
  readonly where: 'away' | 'back'
}): Promise<number> {
  const folder = findInstance(command.name)
  await askForApiServer(folder.controlSocket, command.where).catch((error: unknown) => {
    throw new Error(`Cannot ask sandbox ${folder.name}: ${messageOf(error)}`, { cause: error })
  })
  const what = command.where === 'away' ? 'is away: the proxies go on with what they know' : 'is back'
  process.stdout.write(`The API server ${what}.\n`)
  return 0
}
