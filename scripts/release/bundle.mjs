// The program as it is shipped, in dist/release: a few files of JavaScript, koffi's native part for each processor, licences.
// Without the sandbox, and without the page of `kube-proxy ui` unless it is asked for: --with-ui. It runs with Node and nothing else.

import { spawnSync } from 'node:child_process'
import { SourceMap } from 'node:module'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { buildPage } from '../build-page.mjs'
import { checkout } from './checkout.mjs'
import { fetchPackage, lockedPackage, unpackPackage } from './npm-package.mjs'

/** As Node names them. */
export const processors = ['x64', 'arm64']

/** Node's own settings, as in bin/kube-proxy. env -S: a line that starts with #! has one argument only. */
const shebang = '#!/usr/bin/env -S node --max-semi-space-size=2'

/** The command line of the proxy itself, and the configuration but for what only a file of it needs. Other commands come later. */
const beforeTheLog = new RegExp(
  [
    'src/cli/(apply-flags|build-info|command-line|flag|load-option|log|old-flags|parse-flags|refuse-inspector|version)',
    'src/config/(?!load|decode|encode|watch)',
    'src/modes/(all|[a-z]+/mode)\\.ts$',
  ].join('|'),
)

const inputs = {
  'kube-proxy': 'src/cli/main.ts',
  // The threads of the userspace mode start here: src/modes/userspace/data-path/worker-link.ts
  worker: 'src/modes/userspace/data-path/worker.ts',
}

/** Writes the release and answers which npm packages are in it. */
export async function bundle(out = join(checkout, 'dist', 'release'), { withUi = false } = {}) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const modules = await writePrograms(out, { withUi })
  if (withUi) await buildPage(out)
  chmodSync(join(out, 'kube-proxy.mjs'), 0o755)
  const bundled = packagesOf(modules).map(lockedPackage)
  const natives = processors.map((processor) => copyKoffi(processor, out))
  writeFileSync(join(out, 'build.json'), nameCommit())
  tryIt(join(out, 'kube-proxy.mjs'))
  const page = withUi ? [lockedPackage('preact')] : []
  const packages = [...bundled, ...page, lockedPackage('koffi'), ...natives]
  writeFileSync(join(out, 'LICENSES.txt'), licences(packages))
  return packages
}

/** Files that load each other in a circle are no fault to the bundler, and the program does not start. */
function tryIt(program) {
  for (const words of [['--version'], ['--help'], ['check', '--help']]) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...words], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`Cannot start what was bundled: kube-proxy ${words.join(' ')}: ${stderr}`)
  }
}

async function writePrograms(out, { withUi }) {
  const build = await rolldown({
    cwd: checkout,
    input: inputs,
    platform: 'node',
    preserveEntrySignatures: false,
    // import() of the sandbox fails, and the program says that it was shipped without.
    external: [/\/(explain-)?sandbox\.ts$/, ...(withUi ? [] : [/\/ui\.ts$/])],
    onLog(_level, log) {
      // That something is loaded lazily in one place, and not in another, is no fault.
      if (log.code === 'INEFFECTIVE_DYNAMIC_IMPORT') return
      throw new Error(`Cannot bundle: ${log.message}`)
    },
  })
  const { output } = await build.write({
    dir: out,
    format: 'esm',
    entryFileNames: '[name].mjs',
    chunkFileNames: '[name].mjs',
    // Fewer files, since each costs time: what every part uses, and what comes before the first line of the log. What starts
    // the program is in neither, as the threads load the first.
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: 'yaml', test: /node_modules\/yaml\// },
        // With those that load the larger modules of Node.
        { name: 'system', test: /src\/lib\/(hash|http|port-range)|src\/system\/|src\/netlink\// },
        { name: 'lib', test: /src\/lib\// },
        { name: 'start', test: beforeTheLog },
      ],
    },
    // Names stay readable: they are in traces of errors.
    minify: false,
    // For the places in the log; no file of its own is written.
    sourcemap: 'hidden',
    banner: (chunk) => (chunk.name === 'kube-proxy' && chunk.isEntry ? shebang : ''),
  })
  await build.close()
  writeFileSync(join(out, 'log-sources.json'), `${JSON.stringify(logSources(output))}\n`)
  for (const { type, fileName } of output)
    if (type === 'asset' && fileName.endsWith('.map')) rmSync(join(out, fileName))
  return output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

/** Where the program logs, as src/cli/log-sources.ts reads it: the header of a line and --vmodule name sources, not bundles. */
function logSources(output) {
  const sources = {}
  for (const chunk of output) {
    if (chunk.type !== 'chunk' || chunk.map === null) continue
    const map = new SourceMap(chunk.map)
    const places = new Map()
    for (const [i, text] of chunk.code.split('\n').entries()) {
      const call = /\.(?:info|warn|error|v)\(/.exec(text)
      const { originalSource, originalLine } = call === null ? {} : map.findEntry(i, call.index + 1)
      const path = originalSource?.replace(/^(\.\.\/)+/, '')
      if (path?.startsWith('src/') !== true) continue
      places.set(path, [...(places.get(path) ?? [path]), i + 1, originalLine + 1])
    }
    if (places.size > 0) sources[chunk.fileName] = [...places.values()]
  }
  return sources
}

function packagesOf(modules) {
  const names = modules.map((id) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1])
  return [...new Set(names.filter((name) => name !== undefined))].sort((a, b) => (a < b ? -1 : 1))
}

/** koffi's own loader tells the two kinds of libc apart. */
function copyKoffi(processor, out) {
  const locked = lockedPackage(`@koromix/koffi-linux-${processor}`)
  const folder = join(out, `koffi-linux-${processor}`)
  const installed = join(checkout, 'node_modules', locked.name)
  if (existsSync(installed)) cpSync(installed, folder, { recursive: true })
  else unpackPackage(fetchPackage(locked), folder)
  return locked
}

/** As bin/kube-proxy does it for a checkout. */
function nameCommit() {
  const git = (...args) => {
    const options = { cwd: checkout, encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } }
    const { status, stdout } = spawnSync('git', args, options)
    return status === 0 ? stdout.trim() : undefined
  }
  const commit = existsSync(join(checkout, '.git')) ? git('rev-parse', 'HEAD') : undefined
  if (commit === undefined) return '{}\n'
  const isClean = git('status', '--porcelain', '--', 'src', 'scripts/release', 'package-lock.json') === ''
  const date = git('log', '-1', '--date=format-local:%Y-%m-%dT%H:%M:%SZ', '--format=%cd')
  return `${JSON.stringify({ commit, treeState: isClean ? 'clean' : 'dirty', date })}\n`
}

/** Of what is not ours; LICENSE is for the rest. */
function licences(packages) {
  const texts = packages.map(({ name, version, license }) => {
    // The native parts have the licence of koffi.
    const folder = join(checkout, 'node_modules', name.startsWith('@koromix/') ? 'koffi' : name)
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each))
    if (file === undefined) throw new Error(`Cannot ship ${name}: it has no file with its licence`)
    return `${name} ${version}, ${license}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`
  })
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}

if (import.meta.filename === process.argv[1]) {
  const packages = await bundle(undefined, { withUi: process.argv.includes('--with-ui') })
  const names = packages.map(({ name, version }) => `${name}@${version}`)
  console.error(`dist/release: kube-proxy.mjs with ${names.join(', ')}`)
}
