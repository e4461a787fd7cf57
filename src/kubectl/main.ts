// kubectl-kubeproxy: kubectl finds it in PATH and runs it as `kubectl kubeproxy`.

import { UsageError } from '../lib/command.ts'
import { messageOf } from '../lib/errors.ts'
import { runCommand } from './commands.ts'
import { formatHelp } from './help.ts'
import { parseArguments } from './parse-arguments.ts'
import { formatTestHelp } from './test.ts'

async function main(argv: readonly string[]): Promise<number> {
  try {
    const parsed = parseArguments(argv)
    if (parsed.command === undefined || parsed.command === 'help' || parsed.options.isHelp) {
      const about = parsed.command === 'help' ? parsed.words[0] : parsed.command
      process.stdout.write(about === 'test' ? formatTestHelp() : formatHelp())
      return 0
    }
    return await runCommand(parsed)
  } catch (error) {
    process.stderr.write(`kubectl kubeproxy: ${messageOf(error)}\n`)
    if (error instanceof UsageError) process.stderr.write('See kubectl kubeproxy --help\n')
    return 1
  }
}

// The reader of a pipe has gone.
process.stdout.on('error', () => process.exit(0))
void main(process.argv.slice(2)).then((status) => {
  // What is still on its way to a pipe is written; connections that are kept alive do not hold up the end.
  process.stdout.write('', () => process.exit(status))
})
