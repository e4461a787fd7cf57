// Packages of npm, as files in .cache, each checked against the hash that this repository has for it.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './checkout.mjs'

/** Not for a caller to hand on: npm starts us for `npm pack`, and its options are not meant for the npm that we start. */
const options = ['dry_run', 'json', 'pack_destination', 'workspace', 'workspaces'].map((name) => `npm_config_${name}`)

/** The path of the package's archive. Throws where npm cannot get it, or gets something else. */
export function fetchPackage({ name, version, integrity }) {
  const cache = join(checkout, '.cache', 'npm')
  const file = join(cache, `${name.replace(/^@/, '').replaceAll('/', '-')}-${version}.tgz`)
  if (existsSync(file) && integrityOf(file) === integrity) return file
  mkdirSync(cache, { recursive: true })
  const folder = mkdtempSync(join(cache, 'fetch-'))
  try {
    const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !options.includes(key)))
    const args = ['pack', `${name}@${version}`, '--silent', '--pack-destination', folder]
    const { status, stderr, error } = spawnSync('npm', args, { cwd: folder, env, encoding: 'utf8' })
    const [fetched] = readdirSync(folder)
    if (status !== 0 || fetched === undefined) {
      throw new Error(`Cannot fetch ${name}@${version}: ${error?.message ?? stderr.trim()}`)
    }
    const found = integrityOf(join(folder, fetched))
    if (found !== integrity) {
      throw new Error(`Cannot use ${name}@${version}: its hash is ${found}, must be ${integrity}`)
    }
    renameSync(join(folder, fetched), file)
    return file
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Unpacks an archive of npm into a folder, without its topmost one. `only`: a part of it. */
export function unpackPackage(file, folder, only = []) {
  mkdirSync(folder, { recursive: true })
  const args = ['-xzf', file, '-C', folder, '--strip-components=1', '--no-same-owner', ...only]
  const { status, stderr } = spawnSync('tar', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`Cannot unpack ${file}: ${stderr.trim()}`)
}

/** What package-lock.json says about a package. */
export function lockedPackage(name) {
  const { packages } = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8'))
  const { version, integrity, license } = packages[`node_modules/${name}`]
  return { name, version, integrity, license }
}

function integrityOf(file) {
  return `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
}
