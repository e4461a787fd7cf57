// The program as files of an image or a package: started by a Node that is named, and with what that Node's V8 compiled of it.

import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { compileParts } from './bundle.mjs'
import { checkout } from './checkout.mjs'
import { imageNode, nodeRuntime } from './node-runtimes.mjs'
import { folderEntries, textEntry } from './tree.mjs'

/** As Debian and the registries name them, and as Node does. */
export const processors = { amd64: 'x64', arm64: 'arm64' }

export function released(file) {
  return join(checkout, 'dist', 'release', file)
}

/** Of dist/release, in the folder `home`; `node`: where its Node is. */
export function programEntries({ architecture, home, node }) {
  const processor = processors[architecture]
  const native = `koffi-linux-${processor}`
  // Only where the Node of the image can be run: for another processor the image does without, and starts a little later.
  if (processor === process.arch) compileParts(released(''), join(nodeRuntime(imageNode, processor), 'bin/node'))
  const entries = folderEntries(released(native), `${home}/${native}`)
  // page.js and page.css are there with --with-ui alone.
  const shipped = /\.cjs$|^(build|log-sources)\.json$|^page\.(js|css)$/
  const compiled = `.v${imageNode}-${processor}.bin`
  const isShipped = (file) => shipped.test(file) || file.endsWith(compiled)
  for (const file of readdirSync(released('')).filter(isShipped)) {
    entries.set(`${home}/${file}`, { kind: 'file', mode: 0o644, content: readFileSync(released(file)) })
  }
  // No shell: the kernel starts Node for the first line of the program.
  const launcher = readFileSync(released('kube-proxy.cjs'), 'utf8').replace(/^#!.*/, `#!${node}`)
  return entries.set(`${home}/kube-proxy.cjs`, textEntry(launcher, 0o755))
}

/** Node itself and its licence, at these places. */
export function nodeEntries({ architecture, program, licence }) {
  const folder = nodeRuntime(imageNode, processors[architecture])
  return new Map([
    [program, { kind: 'file', mode: 0o755, content: readFileSync(join(folder, 'bin/node')) }],
    [licence, textEntry(readFileSync(join(folder, 'LICENSE')))],
  ])
}

/** The packages of npm that are of use on this processor. */
export function packagesFor(packages, architecture) {
  const isOther = ({ name }) => name.startsWith('@koromix/') && !name.endsWith(`-${processors[architecture]}`)
  return packages.filter((each) => !isOther(each))
}

/** The commit, and when it was made: all times in a release are that one. */
export function origin() {
  const {
    commit = '',
    date = '1970-01-01T00:00:00Z',
    treeState = '',
  } = JSON.parse(readFileSync(released('build.json'), 'utf8'))
  return { commit, date, treeState }
}
