// A miniature cluster under random change, faults and steady traffic:
//   npm run soak -- --minutes 20 --mode nftables [--seed N] [--services N] [--json FILE]
//
// Prints a line every 10 s, and at the end what was lost, how fast changes were seen, and what grew. Ends with 1 where
// something was lost without an excuse, did not converge, or grew beyond its bound; with 2 where the command line is wrong.
// The mode ipvs runs in User Mode Linux, whose kernel has IPVS.

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { messageOf } from '../../src/lib/errors.ts'
import { enterMachine, makeRoot, removeRoot } from '../sandbox/support/machine.ts'
import { checkout } from '../support/checkout.ts'
import { parseOptions, type SoakOptions } from './options.ts'
import { soak } from './soak.ts'

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  let options: SoakOptions
  try {
    options = parseOptions(args)
  } catch (error) {
    console.error(`soak: ${messageOf(error)}`)
    return 2
  }
  if (options.mode === 'ipvs' && process.env['UML'] === undefined) return runInUml(options)
  console.log(
    `soak: mode ${options.mode}, ${options.minutes} minutes, ${options.services} services, --seed ${options.seed}`,
  )
  // The sandbox follows at the end of this process, however it ends, as long as it is told.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
  enterMachine()
  const root = makeRoot()
  try {
    const report = await soak(root, options)
    if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
    return report.failures.length === 0 ? 0 : 1
  } finally {
    removeRoot(root)
  }
}

/** The same, inside; with time for a slow start and end. */
function runInUml({ minutes, mode, seed, services, json }: SoakOptions): number {
  const values = { minutes, mode, seed, services, ...(json === undefined ? {} : { json: resolve(json) }) }
  const args = Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)])
  const shares = json === undefined ? [] : ['--share', dirname(resolve(json))]
  if (json !== undefined) mkdirSync(dirname(resolve(json)), { recursive: true })
  const uml = [join(checkout, 'test/uml/run.mjs'), ...shares, '--timeout', String(Math.ceil(minutes * 60 + 900))]
  const self = [process.execPath, ...process.execArgv, import.meta.filename, ...args]
  return spawnSync(process.execPath, [...uml, '--', ...self], { stdio: 'inherit' }).status ?? 1
}
