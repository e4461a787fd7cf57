// What node is started with.

// oxlint-disable-next-line import/no-unassigned-import -- It is for its effect, before anything else is loaded.
import './refuse-inspector.ts'
import { runCommandLine } from './command-line.ts'

// No top-level await: a release is CommonJS.
void runCommandLine(process.argv.slice(2)).then((status) => process.exit(status))
