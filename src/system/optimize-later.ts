// V8 compiles what is called often a second time, for speed, on threads of its own.

import { setV8Flag } from './v8-flag.ts'

/** Of bytecode run. V8's own is 66 kB. */
const BUDGET = 264 << 10

/**
 * From now on V8 waits four times as long until it compiles a function for speed. What has thousands of changes to carry out gets
 * there all the same; for a few hundred, compiling takes more than it saves: a quarter of all their CPU. For Node 20 alone: later
 * ones have a compiler in between that costs little, and do not know the flag.
 */
export function optimizeLater(): void {
  if (process.versions.node.startsWith('20.')) setV8Flag(`--interrupt-budget=${BUDGET}`)
}
