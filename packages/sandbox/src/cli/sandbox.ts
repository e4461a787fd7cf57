// `kube-proxy sandbox`: the command line, as a function. Exit status: as of the program, and for exec that of the command.

import { messageOf } from '../../../../src/lib/errors.ts'
import { formatSandboxHelp } from './sandbox-help.ts'
import { parseSandboxArguments, type SandboxCommand } from './sandbox-flags.ts'

const exitStatus = { ok: 0, failure: 1, usage: 2 } as const

/** Runs a command of the sandbox and answers its exit status. */
export async function runSandboxCommand(argv: readonly string[]): Promise<number> {
  let command: SandboxCommand
  try {
    command = parseSandboxArguments(argv)
  } catch (error) {
    process.stderr.write(`kube-proxy: ${messageOf(error)}\nSee kube-proxy sandbox --help\n`)
    return exitStatus.usage
  }
  try {
    return await execute(command, argv)
  } catch (error) {
    process.stderr.write(`kube-proxy: ${messageOf(error)}\n`)
    return exitStatus.failure
  }
}

/** The code of each command is loaded when it is asked for. */
async function execute(command: SandboxCommand, argv: readonly string[]): Promise<number> {
  switch (command.verb) {
    case 'help':
      process.stdout.write(formatSandboxHelp())
      return exitStatus.ok
    case 'start':
      return (await import('./sandbox-start.ts')).runSandboxStart(command, argv)
    case 'exec':
      return (await import('./sandbox-exec.ts')).runSandboxExec(command, argv)
    case 'status':
      return (await import('./sandbox-status.ts')).runSandboxStatus(command)
    case 'kubeconfig':
      return (await import('./sandbox-kubeconfig.ts')).runSandboxKubeconfig(command)
    case 'mode':
      return (await import('./sandbox-change.ts')).runSandboxMode(command)
    case 'api-server':
      return (await import('./sandbox-change.ts')).runSandboxApiServer(command)
    case 'down':
      return (await import('./sandbox-down.ts')).runSandboxDown(command)
  }
}
