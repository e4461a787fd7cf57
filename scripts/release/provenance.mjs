// From what a release was made, as an in-toto statement with SLSA's predicate of version 1.

import { lockedPackage } from './npm-package.mjs'
import { imageNode, nodeIntegrity } from './node-runtimes.mjs'
import { processors } from './program.mjs'

export const payloadType = 'application/vnd.in-toto+json'

/** `assets`: name and sha256 of each file. `source`: where the repository is, if somebody knows. */
export function formatProvenance({ version, assets, origin, source, builder, image, packages, images }) {
  const subject = assets.map(({ name, sha256 }) => ({ name, digest: { sha256 } }))
  const repository = source === undefined ? { name: 'kube-proxy-ts' } : { uri: `git+${source}` }
  const commit = origin.commit === '' ? [] : [{ ...repository, digest: { gitCommit: origin.commit } }]
  const npm = packages.map(({ name, version: each }) => fromNpm(name, each, lockedPackage(name).integrity))
  const nodes = images.map(({ architecture }) => {
    const processor = processors[architecture]
    return fromNpm(`node-linux-${processor}`, imageNode, nodeIntegrity(imageNode, processor))
  })
  const debian = images.flatMap((each) =>
    each.debian.map(({ name, version: found, architecture, sha256 }) => ({
      uri: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(found)}?arch=${architecture}&distro=debian-12`,
      digest: { sha256 },
    })),
  )
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject,
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://kube-proxy-ts.io/npm-run-release/v1',
        externalParameters: { version, image },
        internalParameters: { node: process.version, treeState: origin.treeState },
        resolvedDependencies: [...commit, ...npm, ...nodes, ...debian],
      },
      runDetails: { builder: { id: builder } },
    },
  }
}

function fromNpm(name, version, integrity) {
  const [algorithm, hash] = integrity.split(/-(.*)/s)
  const uri = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { uri, digest: { [algorithm]: Buffer.from(hash, 'base64').toString('hex') } }
}
