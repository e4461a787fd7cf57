// The program as it is shipped, in dist/release: a few files of JavaScript, koffi's native part for each processor, licences.
// Without the sandbox, and without the page of `kube-proxy ui` unless it is asked for: --with-ui. It runs with Node and nothing else.
// A checkout runs its proxy in the same form, since that starts in half the time: scripts/build.mjs.

import { execFileSync, spawnSync } from 'node:child_process'
import { SourceMap } from 'node:module'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { buildPage } from '../build-page.mjs'
import { checkout } from './checkout.mjs'
import { fetchPackage, lockedPackage, unpackPackage } from './npm-package.mjs'

/** As Node names them. */
export const processors = ['x64', 'arm64']

/** Without a setting for V8: on Node 20 and 22, Node would then not use what it has compiled of itself. */
const shebang = '#!/usr/bin/env node'

/**
 * The stages of a start, each with what it loads itself: until the first line of the log, until the API server is asked, and
 * the rest of a proxy in nftables mode. Few files, since each costs time; whatever else there is comes when it is needed.
 */
const stages = {
  start: ['cli/main.ts', 'cli/logging.ts', 'cli/load-options.ts'],
  client: ['compose/run.ts'],
  proxy: ['compose/node-proxy.ts', 'modes/nftables/machine.ts'],
}

const inputs = {
  program: 'src/cli/main.ts',
  // The threads that carry connections start here: src/data-path/worker-link.ts
  worker: 'src/data-path/worker.ts',
  // And the one that sends to the kernel: src/netlink/send-thread.ts
  sender: 'src/netlink/send-worker.ts',
}

/** Writes the release and answers which npm packages are in it. */
export async function bundle(out = join(checkout, 'dist', 'release'), { withUi = false } = {}) {
  const packages = await bundleProgram(out, { withUi, natives: processors })
  tryIt(join(out, 'kube-proxy.cjs'))
  if (withUi) {
    await buildPage(out)
    packages.push(lockedPackage('preact'))
  }
  writeFileSync(join(out, 'LICENSES.txt'), licences(packages))
  return packages
}

/** The program alone, with koffi for these processors. Answers which npm packages are in it. */
export async function bundleProgram(out, { withUi = false, natives }) {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const modules = await writePrograms(out, { withUi })
  writeLauncher(out)
  const bundled = packagesOf(modules).map(lockedPackage)
  const koffi = natives.map((processor) => copyKoffi(processor, out))
  writeFileSync(join(out, 'build.json'), nameCommit())
  compileParts(out)
  return [...bundled, lockedPackage('koffi'), ...koffi]
}

/** Files that load each other in a circle are no fault to the bundler, and the program does not start. */
function tryIt(program) {
  for (const words of [['--version'], ['--help'], ['check', '--help']]) {
    const { status, stderr } = spawnSync(process.execPath, [program, ...words], { encoding: 'utf8' })
    if (status !== 0) throw new Error(`Cannot start what was bundled: kube-proxy ${words.join(' ')}: ${stderr}`)
  }
}

async function writePrograms(out, { withUi }) {
  const modules = new ModuleGraph()
  const build = await rolldown({
    cwd: checkout,
    input: inputs,
    platform: 'node',
    // Node 20 does not know `using`.
    transform: { target: 'node20' },
    preserveEntrySignatures: false,
    plugins: [
      modules.plugin,
      leaveOut(
        withUi ? /packages\/sandbox\/|\/explain-sandbox\.ts$/ : /packages\/sandbox\/|\/(explain-sandbox|ui)\.ts$/,
      ),
    ],
    onLog(_level, log) {
      // That something is loaded lazily in one place, and not in another, is no fault.
      if (log.code === 'INEFFECTIVE_DYNAMIC_IMPORT') return
      throw new Error(`Cannot bundle: ${log.message}`)
    },
  })
  const { output } = await build.write({
    dir: out,
    // Not ESM, which Node gives no way to load with what V8 made of it.
    format: 'cjs',
    entryFileNames: '[name].cjs',
    chunkFileNames: '[name].cjs',
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        { name: 'yaml', test: /node_modules\/yaml\// },
        // The threads of the userspace mode load these two as well, and none of the stages.
        {
          name: 'system',
          test: /src\/lib\/(hash|http|port-range)|src\/system\/|src\/netlink\/(?!send-worker)|src\/conntrack\/messages|src\/conntrack\/uapi/,
        },
        // The parser of commands is not needed to run a proxy.
        { name: 'lib', test: /src\/lib\/(?!command|wrap-text)/ },
        ...Object.entries(stages).map(([name, files]) => ({ name, test: modules.loadedBy(files) })),
      ],
    },
    // Names stay readable: they are in traces of errors.
    minify: false,
    // For the places in the log; no file of its own is written.
    sourcemap: 'hidden',
  })
  await build.close()
  for (const thread of ['worker.cjs', 'sender.cjs']) {
    const { imports } = output.find(({ fileName }) => fileName === thread)
    const stage = imports.find((name) => name.replace('.cjs', '') in stages)
    // It would run the program once more.
    if (stage !== undefined) throw new Error(`Cannot bundle: ${thread} loads ${stage}`)
  }
  // What is bundled has become require(); of the rest, V8 would not know how to load it.
  const lost = output.find(({ code }) => code !== undefined && /\bimport\(/.test(code))
  if (lost !== undefined)
    throw new Error(`Cannot bundle: import() of a module that is not bundled, in ${lost.fileName}`)
  writeFileSync(join(out, 'log-sources.json'), `${JSON.stringify(logSources(output))}\n`)
  for (const { type, fileName } of output)
    if (type === 'asset' && fileName.endsWith('.map')) rmSync(join(out, fileName))
  return output.flatMap((chunk) => (chunk.type === 'chunk' ? chunk.moduleIds : []))
}

/** Which module imports which. */
class ModuleGraph {
  #imports = new Map()
  plugin = { name: 'module-graph', moduleParsed: ({ id, importedIds }) => void this.#imports.set(id, importedIds) }

  /** Whether a module is one of these files of src, or is imported by them. */
  loadedBy(files) {
    let found
    return (id) => (found ??= this.#closure(files)).has(id)
  }

  #closure(files) {
    const found = new Set()
    const add = (id) => {
      if (found.has(id)) return
      found.add(id)
      this.#imports.get(id)?.forEach(add)
    }
    for (const file of files) add(join(checkout, 'src', file))
    return found
  }
}

/** import() of these fails, and the program says that it was shipped without. */
function leaveOut(pattern) {
  const id = '\0left-out'
  return {
    name: 'leave-out',
    resolveId: (source) => (pattern.test(source) ? id : null),
    load: (each) =>
      each === id ? "throw Object.assign(new Error('left out'), { code: 'ERR_MODULE_NOT_FOUND' })" : null,
  }
}

function writeLauncher(out) {
  const text = readFileSync(join(import.meta.dirname, 'launch.cjs'), 'utf8')
  writeFileSync(join(out, 'kube-proxy.cjs'), `${shebang}\n${text}`)
  chmodSync(join(out, 'kube-proxy.cjs'), 0o755)
}

/** For the start of the program on this Node and this processor; others do without. */
export function compileParts(out, node = process.execPath) {
  const parts = readdirSync(out).filter((file) => file.endsWith('.cjs') && file !== 'kube-proxy.cjs')
  const program = join(import.meta.dirname, 'compile.cjs')
  execFileSync(node, ['--hash-seed=1', program, ...parts.map((part) => join(out, part))])
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

/** The names of npm packages among these files. */
export function packagesOf(modules) {
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

/** What --version names: the commit, and whether the files are its own. Nothing where git cannot tell. */
function nameCommit() {
  const git = (...args) => {
    const options = { cwd: checkout, encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } }
    const { status, stdout } = spawnSync('git', args, options)
    return status === 0 ? stdout.trim() : undefined
  }
  const commit = existsSync(join(checkout, '.git')) ? git('rev-parse', 'HEAD') : undefined
  if (commit === undefined) return '{}\n'
  const isClean = git('status', '--porcelain', '--', 'src', 'packages', 'scripts/release', 'package-lock.json') === ''
  const date = git('log', '-1', '--date=format-local:%Y-%m-%dT%H:%M:%SZ', '--format=%cd')
  return `${JSON.stringify({ commit, treeState: isClean ? 'clean' : 'dirty', date })}\n`
}

/** Of what is not ours; LICENSE is for the rest. */
export function licences(packages) {
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
  console.error(`dist/release: kube-proxy.cjs with ${names.join(', ')}`)
}
