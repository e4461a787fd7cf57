// What node is started with.

import './refuse-inspector.ts'
import { runCommandLine } from './command-line.ts'

process.exit(await runCommandLine(process.argv.slice(2)))
