// npm run ok: format, types, lint and pure tests, all at once. Shows what failed printed, and a line for each.

import { spawn } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

const oks = await Promise.all(['format:check', 'typecheck', 'lint', 'test:unit'].map(check))
process.exitCode = oks.every(Boolean) ? 0 : 1

/** Runs a script of package.json. Resolves to whether it succeeded. */
function check(name) {
  const started = performance.now()
  // A sixteenth of the random cases is tried here, all of them in scripts/test. The tests make much garbage: with a larger
  // nursery, a tenth less of the processors' time goes into collecting it.
  const env = { ...process.env, FEWER_RUNS: '16', NODE_OPTIONS: '--max-semi-space-size=64' }
  const child = spawn('npm', ['run', '-s', name], { cwd: root, env })
  const chunks = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => chunks.push(chunk))
  return new Promise((resolve) => {
    child.once('close', (code) => {
      const isOk = code === 0
      const output = Buffer.concat(chunks).toString()
      if (!isOk) process.stdout.write(output)
      const tests = isOk ? (/^.*Tests .*$/m.exec(output)?.[0].trim() ?? '') : ''
      console.log(`${isOk ? 'ok  ' : 'FAIL'} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s) ${tests}`)
      resolve(isOk)
    })
  })
}
