// Packages of Debian, 12 if no other is named, for any of its architectures, with all that they depend on. apt fetches them into .cache and checks
// their signatures; nothing is installed, and no root is needed.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './checkout.mjs'

const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Each as `{ name, version, architecture, sha256, control, file }`, sorted. `alone`: without what they depend on. */
export function fetchDebian(architecture, names, alone = [], release = 'bookworm') {
  const home = join(checkout, '.cache', 'debian', ...(release === 'bookworm' ? [] : [release]), architecture)
  const archives = join(home, 'archives')
  const apt = openApt(home, architecture, release)
  apt(archives, 'update')
  const closure = ['install', '--yes', '--no-install-recommends']
  // apt names only what it would fetch, so it is asked where nothing is.
  const nothing = join(home, 'nothing')
  const files = uris(apt(nothing, ...closure, '--print-uris', ...names))
  const others = alone.length === 0 ? [] : uris(apt(nothing, 'download', '--print-uris', ...alone))
  apt(archives, ...closure, '--download-only', ...names)
  if (alone.length > 0) apt(archives, 'download', ...alone)
  const all = [...files, ...others].map((file) => describePackage(join(archives, file)))
  return all.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Unpacks a package into a folder of its own and answers that. */
export function unpackDebian({ file, sha256 }) {
  const folder = join(checkout, '.cache', 'debian', 'unpacked', sha256)
  if (existsSync(join(folder, '.complete'))) return join(folder, 'root')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  execFileSync('dpkg-deb', ['--extract', file, join(folder, 'root')])
  writeFileSync(join(folder, '.complete'), '')
  return join(folder, 'root')
}

function openApt(home, architecture, release) {
  for (const folder of ['lists/partial', 'archives/partial', 'nothing/partial'])
    mkdirSync(join(home, folder), { recursive: true })
  const mirror = process.env.DEBIAN_MIRROR ?? 'http://deb.debian.org'
  const updates = [`debian ${release}-updates`, `debian-security ${release}-security`]
  const suites = [`debian ${release}`, ...(release === 'sid' ? [] : updates)]
  const sources = join(home, 'sources.list')
  writeFileSync(sources, suites.map((suite) => `deb [signed-by=${keyring}] ${mirror}/${suite} main\n`).join(''))
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
    'Acquire::Retries': 3,
    'Debug::NoLocking': 1,
    'Dir::State': home,
    'Dir::State::lists': join(home, 'lists'),
    // Nothing is there yet: all dependencies are named.
    'Dir::State::status': '/dev/null',
    'Dir::Cache': home,
    'Dir::Etc::sourcelist': sources,
    'Dir::Etc::sourceparts': '-',
    'Dir::Etc::preferences': '-',
    'Dir::Etc::preferencesparts': '-',
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  return (archives, ...args) => {
    try {
      const stdio = ['ignore', 'pipe', 'pipe']
      return execFileSync('apt-get', ['-q', ...options, '-o', `Dir::Cache::archives=${archives}`, ...args], {
        encoding: 'utf8',
        cwd: archives,
        stdio,
      })
    } catch (error) {
      throw new Error(`Cannot fetch Debian packages for ${architecture}: ${error.stderr || error.message}`, {
        cause: error,
      })
    }
  }
}

/** The names of the files, of lines such as `'http://.../a_1%2b2_all.deb' a_1+2_all.deb 123 SHA256:...`. */
function uris(text) {
  return [...text.matchAll(/^'[^']+' (\S+\.deb) /gm)].map((match) => match[1])
}

function describePackage(file) {
  const control = execFileSync('dpkg-deb', ['--field', file], { encoding: 'utf8' })
  const field = (name) => new RegExp(`^${name}: (.*)$`, 'm').exec(control)?.[1]
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex')
  return {
    name: field('Package'),
    version: field('Version'),
    architecture: field('Architecture'),
    sha256,
    control,
    file,
  }
}
