// What V8 makes of the parts of a release, written beside them for launch.cjs:
//   node --hash-seed=1 scripts/release/compile.cjs PART...
//
// It is good for this very Node, without flags for V8.

const { readFileSync, writeFileSync } = require('node:fs')
const { setFlagsFromString } = require('node:v8')
const { headerOf, scriptOf, suffix } = require('./launch.cjs')

for (const file of process.argv.slice(2)) {
  const bytes = readFileSync(file)
  // All functions at once, and not each when it is called first.
  setFlagsFromString('--no-lazy')
  const script = scriptOf(file, { bytes })
  // V8 notes down its flags, and wants to find the same when it takes this back. A seed that is not random has made it the same
  // at each build.
  setFlagsFromString('--lazy')
  setFlagsFromString('--hash-seed=0')
  const compiled = script.createCachedData()
  writeFileSync(file + suffix, Buffer.concat([headerOf(bytes, compiled), compiled]))
}
