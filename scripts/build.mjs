// The program of a checkout, in dist; bin/kube-proxy calls it when the sources are newer. Types are checked where the program is
// developed, not where it is run.

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildPage } from './build-page.mjs'
import { bundleProgram } from './release/bundle.mjs'
import { checkout } from './release/checkout.mjs'

const dist = join(checkout, 'dist')

try {
  compile()
  await buildPage()
  await bundleProxy()
  // What --version names is the same for both.
  copyFileSync(join(dist, 'bundle', 'build.json'), join(dist, 'src', 'cli', 'build.json'))
} catch (error) {
  console.error(`kube-proxy: Cannot build: ${error.message}`)
  process.exitCode = 1
}

/** File by file, as the sandbox and tests need it. */
function compile() {
  const compiler = join(checkout, 'node_modules', 'typescript', 'bin', 'tsc')
  const args = [compiler, '-p', 'tsconfig.build.json', '--noCheck']
  // What it reports, it prints to standard output, which belongs to the program.
  const { status } = spawnSync(process.execPath, args, { cwd: checkout, stdio: ['ignore', 2, 2] })
  if (status !== 0) throw new Error('the compiler reported errors')
}

/** The proxy as it is shipped, for this machine. It comes into its place at once: another may start from the one before. */
async function bundleProxy() {
  const [place, next, last] = ['', '.next', '.last'].map((suffix) => join(dist, `bundle${suffix}`))
  await bundleProgram(next, { natives: [process.arch] })
  rmSync(last, { recursive: true, force: true })
  if (existsSync(place)) renameSync(place, last)
  renameSync(next, place)
  rmSync(last, { recursive: true, force: true })
}
