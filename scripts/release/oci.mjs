// An image as one archive: the layout of OCI, with the list of docker beside it, so that containerd, docker and podman load it.

import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { formatTar } from './tar.mjs'

const media = (kind) => `application/vnd.oci.image.${kind}`

/**
 * `layers`: entries of formatTar(), the lowest first, each with what it is. Answers the archive, and the digest by which a
 * registry and a manifest know the image.
 */
export function formatImage({ name, tag, architecture, created, config, labels, layers }) {
  const blobs = new Map()
  const put = (content) => {
    const digest = sha256(content)
    blobs.set(`blobs/sha256/${digest}`, { kind: 'file', content })
    return { digest: `sha256:${digest}`, size: content.length }
  }
  const packed = layers.map(({ entries, what }) => {
    const tar = formatTar(entries)
    // 9: it is made once and pulled by every node.
    const gzip = gzipSync(tar, { level: 9 })
    return { ...put(gzip), diffId: `sha256:${sha256(tar)}`, what, content: gzip }
  })
  const configuration = put(
    json({
      created,
      architecture,
      os: 'linux',
      config: { ...config, Labels: labels },
      rootfs: { type: 'layers', diff_ids: packed.map(({ diffId }) => diffId) },
      history: packed.map(({ what }) => ({ created, created_by: what })),
    }),
  )
  const manifest = put(
    json({
      schemaVersion: 2,
      mediaType: media('manifest.v1+json'),
      config: { mediaType: media('config.v1+json'), ...configuration },
      layers: packed.map(({ digest, size }) => ({ mediaType: media('layer.v1.tar+gzip'), digest, size })),
      annotations: labels,
    }),
  )
  const reference = {
    'io.containerd.image.name': `${name}:${tag}`,
    'org.opencontainers.image.ref.name': tag,
  }
  const platform = { architecture, os: 'linux', ...(architecture === 'arm64' && { variant: 'v8' }) }
  const index = {
    schemaVersion: 2,
    mediaType: media('index.v1+json'),
    manifests: [{ mediaType: media('manifest.v1+json'), ...manifest, platform, annotations: reference }],
  }
  const docker = [
    {
      Config: blobPath(configuration.digest),
      // docker shortens the name of its own registry, and does not look it up in full.
      RepoTags: [`${name.replace(/^docker\.io\/(library\/)?/, '')}:${tag}`],
      Layers: packed.map(({ digest }) => blobPath(digest)),
    },
  ]
  const archive = formatTar(
    new Map([
      ...blobs,
      ['oci-layout', { kind: 'file', content: json({ imageLayoutVersion: '1.0.0' }) }],
      ['index.json', { kind: 'file', content: json(index) }],
      ['manifest.json', { kind: 'file', content: json(docker) }],
    ]),
  )
  return { archive, digest: manifest.digest, compressed: packed.reduce((sum, { size }) => sum + size, 0) }
}

function blobPath(digest) {
  return `blobs/${digest.replace(':', '/')}`
}

function json(value) {
  return Buffer.from(JSON.stringify(value))
}

function sha256(content) {
  return createHash('sha256').update(content).digest('hex')
}
