// npm run set-version -- VERSION: writes it wherever the version stands, and gives the changelog's newest section its name. A test
// holds all these places to package.json.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from './checkout.mjs'

/** Each with what is around the version in it. */
export const places = [
  ['package.json', /("version": ")([^"]+)/],
  ['packages/sandbox/package.json', /("version": ")([^"]+)/],
  ['package-lock.json', /("name": "(?:kube-proxy-ts|@kube-proxy-ts\/sandbox)",\n\s*"version": ")([^"]+)/g],
  ['src/lib/program-version.ts', /(programVersion = ')([^']+)/],
  ['deploy/chart/Chart.yaml', /^((?:version|appVersion): )(.+)/gm],
  ['deploy/base/kustomization.yaml', /(newTag: )(.+)/],
  ['deploy/kubeadm-patches/kubeproxydaemonset+strategic.yaml', /(image: .*:)(.+)/],
  ['deploy/Dockerfile', /(kube-proxy-ts:)(\S+)/],
  ['deploy/kube-proxy.service', /(kube-proxy-ts-)(\d\S*)(?=\.tgz)/g],
  ['deploy/README.md', /(kube-proxy-ts[-_]|newTag: )(\d+\.\d+\.\d+)/g],
  ['README.md', /(kube-proxy-ts[-_])(\d+\.\d+\.\d+)/g],
  ['docs/guides/kubectl-plugin.md', /(kubectl-kubeproxy-)(\d+\.\d+\.\d+)/g],
  ['docs/guides/migrate.md', /(kube-proxy-ts[-:_])(\d+\.\d+\.\d+)/g],
]

/** The versions that are in a file, by its pattern. */
export function versionsIn([file, pattern]) {
  const text = readFileSync(join(checkout, file), 'utf8')
  return [...text.matchAll(new RegExp(pattern, pattern.flags.replace('g', '') + 'g'))].map((match) => match[2])
}

export function setVersion(version) {
  for (const [file, pattern] of places) rewrite(file, (text) => text.replace(pattern, `$1${version}`))
  rewrite('CHANGELOG.md', (text) => text.replace(/^## Unreleased$/m, `## Unreleased\n\n## ${version}`))
}

function rewrite(file, change) {
  const path = join(checkout, file)
  writeFileSync(path, change(readFileSync(path, 'utf8')))
}

if (import.meta.filename === process.argv[1]) {
  const [version] = process.argv.slice(2)
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$/.test(version ?? '')) {
    console.error(`Cannot set the version ${version}: must look like 0.2.0 or 0.2.0-rc.1`)
    process.exit(2)
  }
  setVersion(version)
}
