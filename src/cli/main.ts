// What node is started with.

// oxlint-disable-next-line import/no-unassigned-import -- It is for its effect, before anything else is loaded.
import './refuse-inspector.ts'
import { runCommandLine } from './command-line.ts'

// No top-level await: a release is CommonJS.
void runCommandLine(process.argv.slice(2)).then(endWith)

/** A pipe that is full has not taken all of the output yet. */
function endWith(status: number): void {
  const end = () => process.exit(status)
  if (process.stdout.writableLength === 0) end()
  else process.stdout.once('error', end).write('', end)
}
