// What is in an image or a package, as CycloneDX: what npm says of the packages that are bundled, Node, and the packages of Debian.

import { execFileSync } from 'node:child_process'
import { checkout } from './checkout.mjs'

/** The same for the same content: without the time and the random number of npm's. `node`: of what has a Node of its own. */
export function formatSbom({ type, packages, node, debian = [], architecture, version }) {
  const args = ['sbom', '--sbom-format=cyclonedx', '--package-lock-only']
  const options = { cwd: checkout, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 27 }
  const { bomFormat, specVersion, components } = JSON.parse(execFileSync('npm', args, options))
  const npm = packages.map(({ name, version: wanted }) => {
    const found = components.find((each) => each.purl === `pkg:npm/${name.replace('@', '%40')}@${wanted}`)
    if (found === undefined) throw new Error(`Cannot describe ${name}@${wanted}: npm sbom does not have it`)
    // Of no use without the place on this machine.
    const { properties: _, ...component } = found
    return component
  })
  const runtime = node !== undefined && {
    'bom-ref': `node@${node}`,
    type: 'platform',
    name: 'node',
    version: node,
    purl: `pkg:npm/node-linux-${architecture === 'amd64' ? 'x64' : architecture}@${node}`,
    licenses: [{ license: { name: 'MIT and others, see the LICENSE of Node beside it' } }],
  }
  const system = debian.map((each) => ({
    'bom-ref': `deb:${each.name}@${each.version}`,
    type: 'library',
    name: each.name,
    version: each.version,
    purl: `pkg:deb/debian/${each.name.replaceAll('+', '%2B')}@${encodeURIComponent(each.version)}?arch=${each.architecture}&distro=debian-12`,
    hashes: [{ alg: 'SHA-256', content: each.sha256 }],
    licenses: [{ license: { name: `see /usr/share/doc/${each.name}/copyright` } }],
  }))
  const component = { type, name: 'kube-proxy-ts', version, 'bom-ref': `kube-proxy-ts@${version}` }
  const bom = {
    bomFormat,
    specVersion,
    version: 1,
    metadata: { component },
    components: [...npm, runtime, ...system].filter(Boolean),
  }
  return `${JSON.stringify(bom, undefined, 2)}\n`
}
