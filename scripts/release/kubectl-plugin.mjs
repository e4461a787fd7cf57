// kubectl-kubeproxy: one file of JavaScript, the archive that krew installs, and its manifest.

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { licences, packagesOf } from './bundle.mjs'
import { checkout } from './checkout.mjs'
import { lockedPackage } from './npm-package.mjs'
import { formatTar } from './tar.mjs'

const { name: packageName, version: ownVersion } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))

const help = `scripts/kubectl-plugin: builds the kubectl plugin.

  --version V    the version of package.json, if not given
  --uri URI      where the archive will be, for krew's manifest; the file itself, if not given
  --homepage URL for krew's manifest; that of package.json's name, if not given
  --out FOLDER   dist/kubectl, if not given

It writes kubectl-kubeproxy, which runs from any folder of PATH, its archive, and krew's manifest of it.
`

/** Writes the program alone. Answers its path, and which npm packages are in it. */
export async function bundlePlugin(out) {
  mkdirSync(out, { recursive: true })
  const file = join(out, 'kubectl-kubeproxy')
  const build = await rolldown({
    cwd: checkout,
    input: 'src/kubectl/main.ts',
    platform: 'node',
    onLog(_level, log) {
      throw new Error(`Cannot bundle: ${log.message}`)
    },
  })
  // A file without an ending is CommonJS for Node, unless a package.json above it says otherwise, as that of the checkout does.
  writeFileSync(join(out, 'package.json'), '{ "type": "commonjs" }\n')
  const { output } = await build.write({ file, format: 'cjs', banner: '#!/usr/bin/env node', codeSplitting: false })
  await build.close()
  chmodSync(file, 0o755)
  execFileSync(process.execPath, [file, '--help'])
  return { file, packages: packagesOf(output.flatMap(({ moduleIds = [] }) => moduleIds)).map(lockedPackage) }
}

/** Answers the paths of the archive and of krew's manifest of it, and which npm packages are in the program. */
export async function buildPlugin({ out, version, uri, homepage }) {
  rmSync(out, { recursive: true, force: true })
  const { file, packages } = await bundlePlugin(out)
  const archiveName = `kubectl-kubeproxy-${version}.tar.gz`
  const entries = new Map([
    ['kubectl-kubeproxy', { kind: 'file', mode: 0o755, content: readFileSync(file) }],
    ['LICENSE', { kind: 'file', content: readFileSync(join(checkout, 'LICENSE')) }],
    ['LICENSES.txt', { kind: 'file', content: Buffer.from(licences(packages)) }],
  ])
  const archive = gzipSync(formatTar(entries), { level: 9 })
  writeFileSync(join(out, archiveName), archive)
  const values = {
    version,
    homepage: homepage ?? `https://www.npmjs.com/package/${packageName}`,
    uri: uri ?? `file://${join(out, archiveName)}`,
    sha256: createHash('sha256').update(archive).digest('hex'),
  }
  const template = readFileSync(join(checkout, 'deploy/krew/kubeproxy.yaml'), 'utf8')
  const manifest = template
    .replace(/^#.*\n/gm, '')
    .replace(/\{\{ (\w+) \}\}/g, (_, name) => values[name] ?? fail(`krew's manifest has no value ${name}`))
  writeFileSync(join(out, 'kubeproxy.yaml'), manifest)
  return { archive: join(out, archiveName), manifest: join(out, 'kubeproxy.yaml'), packages }
}

function fail(text) {
  throw new Error(`Cannot fill in ${text}`)
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({
    options: {
      version: { type: 'string' },
      uri: { type: 'string' },
      homepage: { type: 'string' },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) {
    process.stdout.write(help)
  } else {
    const built = await buildPlugin({
      out: values.out ?? join(checkout, 'dist', 'kubectl'),
      version: values.version ?? ownVersion,
      uri: values.uri,
      homepage: values.homepage,
    })
    console.log(`${built.archive}\n${built.manifest}`)
  }
}
