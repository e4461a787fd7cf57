// The package for Debian and Ubuntu: the program with a Node of its own, and the systemd unit. Installing it starts nothing, since a
// node may still have its old proxy.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { checkout } from './checkout.mjs'
import { nodeEntries, programEntries, released } from './program.mjs'
import { formatTar } from './tar.mjs'
import { textEntry } from './tree.mjs'

const home = 'usr/lib/kube-proxy-ts'
const docs = 'usr/share/doc/kube-proxy-ts'
const unitFile = 'usr/lib/systemd/system/kube-proxy-ts.service'

/** Each for `sh -e`; a machine without systemd, such as a container, has no use for them. */
const scripts = {
  // An upgrade starts the new program in place of the old one, whose rules stay meanwhile.
  postinst: `if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ "$1" = configure ] && [ -n "$2" ]; then systemctl try-restart kube-proxy-ts.service; fi
fi`,
  prerm: `if [ -d /run/systemd/system ] && [ "$1" = remove ]; then systemctl disable --now kube-proxy-ts.service; fi`,
  postrm: `if [ -d /run/systemd/system ] && [ "$1" = remove ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
  rm -rf /etc/systemd/system/kube-proxy-ts.service.d
  rm -f /etc/systemd/system/multi-user.target.wants/kube-proxy-ts.service
fi`,
}

export function formatDeb({ version, architecture, sbom }) {
  const files = fileEntries({ architecture, sbom })
  const contents = [...files.values()].map(({ content }) => content?.length ?? 0)
  const control = new Map([
    ['control', textEntry(formatControl({ version, architecture, bytes: contents.reduce((a, b) => a + b, 0) }))],
    ['md5sums', textEntry(formatSums(files))],
    ...Object.entries(scripts).map(([name, text]) => [name, textEntry(`#!/bin/sh\nset -e\n${text}\n`, 0o755)]),
  ])
  return formatAr([
    ['debian-binary', Buffer.from('2.0\n')],
    ['control.tar.gz', gzipSync(formatTar(control), { level: 9 })],
    ['data.tar.gz', gzipSync(formatTar(files), { level: 9 })],
  ])
}

function fileEntries({ architecture, sbom }) {
  const read = (...path) => readFileSync(join(checkout, ...path))
  const unit = read('deploy', 'kube-proxy.service').toString()
  const program = `/${home}/kube-proxy`
  return new Map([
    ...nodeEntries({ architecture, program: `${home}/node`, licence: `${docs}/node-LICENSE` }),
    // koffi has a part for another C library, which Debian does not use.
    ...[...programEntries({ architecture, home, node: `/${home}/node` })].filter(([path]) => !path.includes('/musl_')),
    // By this name other programs, and ours, know it for a kube-proxy in a list of processes.
    [`${home}/kube-proxy`, { kind: 'link', target: 'kube-proxy.cjs' }],
    ['usr/bin/kube-proxy-ts', { kind: 'link', target: `../lib/kube-proxy-ts/kube-proxy` }],
    [unitFile, textEntry(unit.slice(unit.indexOf('[Unit]')).replace(/^(ExecStart=)\S+/m, `$1${program}`))],
    [`${docs}/examples/kube-proxy-iptables.conf`, textEntry(read('deploy', 'kube-proxy-iptables.conf'))],
    [`${docs}/changelog.gz`, { kind: 'file', content: gzipSync(read('CHANGELOG.md'), { level: 9 }) }],
    [`${docs}/copyright`, textEntry(formatCopyright(read('LICENSE')))],
    [`${docs}/LICENSES.txt`, textEntry(readFileSync(released('LICENSES.txt')))],
    [`${docs}/sbom.cdx.json`, textEntry(sbom)],
  ])
}

/** `0.2.0-rc.1` comes before `0.2.0`: Debian says so with a tilde. */
export function debianVersion(version) {
  return version.replace('-', '~')
}

function formatControl({ version, architecture, bytes }) {
  // Node is linked with the two libraries; these versions are those that it was built for.
  return `Package: kube-proxy-ts
Version: ${debianVersion(version)}
Architecture: ${architecture}
Maintainer: The maintainers of kube-proxy-ts <maintainers@localhost>
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: libc6 (>= 2.28), libstdc++6 (>= 8)
Recommends: iptables, kmod
Section: net
Priority: optional
Description: Kubernetes node service proxy, in TypeScript
 It makes the kernel send traffic for a Service to one of its pods, in place of
 kube-proxy: with the same flags and the same configuration file.
 .
 Nothing is started by installing it. The unit is kube-proxy-ts.service.
`
}

function formatSums(files) {
  const lines = [...files]
    .filter(([, { kind }]) => kind === 'file')
    .map(([path, { content }]) => `${createHash('md5').update(content).digest('hex')}  ${path}\n`)
  return lines.sort().join('')
}

function formatCopyright(licence) {
  return `Of what is not of this project: LICENSES.txt and node-LICENSE beside this file.\n\n${licence}`
}

/** As `ar` writes it, of root and from 1970. */
function formatAr(members) {
  const parts = members.flatMap(([name, content]) => {
    const header = `${name.padEnd(16)}${'0'.padEnd(12)}${'0'.padEnd(6)}${'0'.padEnd(6)}${'100644'.padEnd(8)}${String(content.length).padEnd(10)}\`\n`
    return [Buffer.from(header), content, Buffer.from(content.length % 2 === 0 ? '' : '\n')]
  })
  return Buffer.concat([Buffer.from('!<arch>\n'), ...parts])
}
