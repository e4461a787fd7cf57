import { KernelError, messageOf } from '../../../../src/lib/errors.ts'
import { enterPlace } from '../commands/enter-place.ts'
import { askPlace } from '../instance/control.ts'
import { findInstance } from './sandbox-instances.ts'
import { enterUserNamespace, isInsideUserNamespace, runAttached } from './sandbox-rerun.ts'

export interface ExecCommand {
  readonly name: string | undefined
  readonly place: string
  /** Empty: a shell. */
  readonly command: readonly string[]
}

/** Runs a command in a pod's, a node's or the machine's network, with its host name and environment. */
export async function runSandboxExec(command: ExecCommand, argv: readonly string[]): Promise<number> {
  const folder = findInstance(command.name)
  const record = folder.read()
  if (record?.privilege === 'user namespace' && !isInsideUserNamespace()) return enterUserNamespace(record.pid, argv)
  const place = await askPlace(folder.controlSocket, command.place).catch((error: unknown) => {
    throw new Error(`Cannot ask sandbox ${folder.name}: ${messageOf(error)}${needsRoot(error)}`, { cause: error })
  })
  if ('problem' in place) throw new Error(`Cannot run in ${command.place}: ${place.problem}`)
  try {
    enterPlace(place)
  } catch (error) {
    throw new Error(`${messageOf(error)}${needsRoot(error)}`, { cause: error })
  }
  const program = command.command.length === 0 ? [process.env['SHELL'] ?? '/bin/sh'] : command.command
  return runAttached(program, 'inherit', place.env)
}

function needsRoot(error: unknown): string {
  const code = error instanceof KernelError ? error.errno : (error as NodeJS.ErrnoException).code
  return code === 'EPERM' || code === 'EACCES' ? '; root may do it: put sudo in front' : ''
}
