// Images and charts as archives in the layout of OCI. One with an image of one processor has the list of docker beside it, so that
// containerd, docker and podman load it.

import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { formatTar } from './tar.mjs'

const media = (kind) => `application/vnd.oci.image.${kind}`

/** What an archive is made of, each part under its own digest. */
class Blobs {
  entries = new Map()

  put(content) {
    const digest = sha256(content)
    this.entries.set(`blobs/sha256/${digest}`, { kind: 'file', content })
    return { digest: `sha256:${digest}`, size: content.length }
  }
}

/** The layers of an image, packed; `layers`: entries of formatTar(), the lowest first, each with what it is. */
export function packLayers(layers) {
  return layers.map(({ entries, what }) => {
    const tar = formatTar(entries)
    // 9: it is made once and pulled by every node.
    return { what, content: gzipSync(tar, { level: 9 }), diffId: `sha256:${sha256(tar)}` }
  })
}

/** Answers the archive, the digest by which a registry and a manifest know the image, and its size. */
export function formatImage({ name, tag, ...image }) {
  const blobs = new Blobs()
  const { manifest, docker, compressed } = addImage(blobs, image)
  const repoTags = [`${name.replace(/^docker\.io\/(library\/)?/, '')}:${tag}`]
  const archive = formatLayout(blobs, {
    manifests: [{ ...manifest, annotations: referTo(name, tag) }],
    // docker shortens the name of its own registry, and does not look it up in full.
    others: [['manifest.json', [{ Config: docker.Config, RepoTags: repoTags, Layers: docker.Layers }]]],
  })
  return { archive, digest: manifest.digest, compressed }
}

/** One image for several processors: a registry gives to each node the one of its own. */
export function formatImageIndex({ name, tag, labels, images }) {
  const blobs = new Blobs()
  const manifests = images.map((image) => addImage(blobs, image).manifest)
  const index = blobs.put(json({ schemaVersion: 2, mediaType: media('index.v1+json'), manifests, annotations: labels }))
  const entry = { mediaType: media('index.v1+json'), ...index, annotations: referTo(name, tag) }
  return { archive: formatLayout(blobs, { manifests: [entry] }), digest: index.digest }
}

/** Something else that registries keep: `helm push` and `helm pull oci://...` know a chart by these types. */
export function formatChartArchive({ name, tag, chart, metadata, created }) {
  const blobs = new Blobs()
  const helm = (kind) => `application/vnd.cncf.helm.${kind}`
  const annotations = {
    'org.opencontainers.image.created': created,
    'org.opencontainers.image.description': metadata.description,
    'org.opencontainers.image.title': metadata.name,
    'org.opencontainers.image.version': metadata.version,
  }
  const manifest = blobs.put(
    json({
      schemaVersion: 2,
      mediaType: media('manifest.v1+json'),
      config: { mediaType: helm('config.v1+json'), ...blobs.put(json(metadata)) },
      layers: [{ mediaType: helm('chart.content.v1.tar+gzip'), ...blobs.put(chart) }],
      annotations,
    }),
  )
  const entry = { mediaType: media('manifest.v1+json'), ...manifest, annotations: referTo(name, tag) }
  return { archive: formatLayout(blobs, { manifests: [entry] }), digest: manifest.digest }
}

function addImage(blobs, { architecture, created, config, labels, packed }) {
  const layers = packed.map(({ content }) => ({ mediaType: media('layer.v1.tar+gzip'), ...blobs.put(content) }))
  const configuration = blobs.put(
    json({
      created,
      architecture,
      os: 'linux',
      config: { ...config, Labels: labels },
      rootfs: { type: 'layers', diff_ids: packed.map(({ diffId }) => diffId) },
      history: packed.map(({ what }) => ({ created, created_by: what })),
    }),
  )
  const manifest = blobs.put(
    json({
      schemaVersion: 2,
      mediaType: media('manifest.v1+json'),
      config: { mediaType: media('config.v1+json'), ...configuration },
      layers,
      annotations: labels,
    }),
  )
  const platform = { architecture, os: 'linux', ...(architecture === 'arm64' && { variant: 'v8' }) }
  return {
    manifest: { mediaType: media('manifest.v1+json'), ...manifest, platform },
    docker: { Config: blobPath(configuration.digest), Layers: layers.map(({ digest }) => blobPath(digest)) },
    compressed: layers.reduce((sum, { size }) => sum + size, 0),
  }
}

function referTo(name, tag) {
  return { 'io.containerd.image.name': `${name}:${tag}`, 'org.opencontainers.image.ref.name': tag }
}

function formatLayout(blobs, { manifests, others = [] }) {
  const index = { schemaVersion: 2, mediaType: media('index.v1+json'), manifests }
  const files = [['oci-layout', { imageLayoutVersion: '1.0.0' }], ['index.json', index], ...others]
  return formatTar(
    new Map([...blobs.entries, ...files.map(([name, value]) => [name, { kind: 'file', content: json(value) }])]),
  )
}

function blobPath(digest) {
  return `blobs/${digest.replace(':', '/')}`
}

function json(value) {
  return Buffer.from(JSON.stringify(value))
}

export function sha256(content) {
  return createHash('sha256').update(content).digest('hex')
}
