// V8 compiles what is called often a second time, for speed, on threads of its own.

import { setV8Flag } from './v8-flag.ts'

/** How often V8 counts a function before it compiles it for speed, of each version of V8. `own` is what V8 comes with. */
interface Patience {
  readonly own: readonly string[]
  readonly longer: readonly string[]
}

/** In bytes of bytecode run. */
const PATIENCE_OF_NODE_20: Patience = {
  own: [`--interrupt-budget=${66 << 10}`],
  longer: [`--interrupt-budget=${1056 << 10}`],
}

/** In calls. From Node 24 on there is a second compiler in between, which is quicker. */
const PATIENCE: Patience = {
  own: ['--invocation-count-for-turbofan=3000', '--invocation-count-for-maglev=400'],
  longer: ['--invocation-count-for-turbofan=48000', '--invocation-count-for-maglev=6400'],
}

const patience = process.versions.node.startsWith('20.') ? PATIENCE_OF_NODE_20 : PATIENCE

/**
 * From now on V8 waits sixteen times as long until it compiles a function for speed. What has thousands of objects to go through gets
 * there all the same; for a start with a thousand services, compiling takes a third of all CPU and saves a twentieth, and for a few
 * hundred changes it takes a quarter.
 */
export function optimizeLater(): void {
  patience.longer.forEach(setV8Flag)
}

/** As V8 does it when nobody asks: for a long list, which pays back what compiling takes. */
export function optimizeSooner(): void {
  patience.own.forEach(setV8Flag)
}
