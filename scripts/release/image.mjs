// The image for nodes, as an archive that `ctr -n k8s.io images import`, `docker load -i` and `podman load -i` take.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bundle } from './bundle.mjs'
import { checkout } from './checkout.mjs'
import { fetchDebian, unpackDebian } from './debian.mjs'
import { imageNode } from './node-runtimes.mjs'
import { formatImage, formatImageIndex, packLayers, sha256 } from './oci.mjs'
import { nodeEntries, origin, packagesFor, processors, programEntries, released } from './program.mjs'
import { formatSbom } from './sbom.mjs'
import { formatTar } from './tar.mjs'
import { debianEntries, mergedLinks, textEntry } from './tree.mjs'

const help = `scripts/image: builds the image of kube-proxy-ts, without a registry and without docker.

  --arch ARCH    amd64 or arm64; may be given twice. Both, if not given.
  --name NAME    docker.io/library/kube-proxy-ts, if not given
  --tag TAG      the version of package.json, if not given
  --out FOLDER   .cache/image, if not given
  --with-ui      with the page of kube-proxy ui
  --root FILE    instead of all this, the files of the image as one tar, for one --arch: for deploy/Dockerfile

It takes npm (Node itself), apt-get and dpkg-deb (the C library, iptables and kmod of Debian 12), and the network. For each
architecture it writes an archive and an SBOM, and for all of them SHA256SUMS. Load one with

  ctr -n k8s.io images import FILE
  docker load -i FILE
  podman load -i FILE

Both processors as one image, for a registry, are made by npm run release.
`

/** iptables of both kinds, for the iptables mode; kmod, which iptables-legacy asks for modules; what Node is linked with. */
const debianPackages = ['iptables', 'kmod', 'libc6', 'libstdc++6']
/** For /etc/os-release, and the texts of the licences that copyright files refer to. */
const debianFiles = ['base-files']

const home = 'usr/local/lib/kube-proxy'
const nodePlaces = { program: 'usr/local/bin/node', licence: 'usr/local/share/doc/node/LICENSE' }

/** Whatever makes an image of it: the same files. */
export async function buildRoot({ architecture, tag, file, withUi }) {
  const { layers } = planImage({ architecture, tag, packages: await bundle(undefined, { withUi }) })
  writeFileSync(file, formatTar(new Map(layers.flatMap(({ entries }) => [...entries]))))
}

/** The archives, of which one is for all architectures if there are several, and what went into them. */
export async function buildImages({ architectures, name, tag, out, packages }) {
  mkdirSync(out, { recursive: true })
  const plans = architectures.map((architecture) => {
    const { layers, ...plan } = planImage({ architecture, tag, packages })
    return { ...plan, packed: packLayers(layers) }
  })
  const images = plans.map(({ architecture, sbom, debian, ...plan }) => {
    const file = join(out, `kube-proxy-ts-${tag}-${architecture}.tar`)
    const { archive, digest, compressed } = formatImage({ name, tag, architecture, ...plan })
    writeFileSync(file, archive)
    const sbomFile = file.replace(/\.tar$/, '.cdx.json')
    writeFileSync(sbomFile, sbom)
    return { architecture, file, sbomFile, digest, compressed, debian }
  })
  return { images, index: () => formatImageIndex({ name, tag, labels: plans[0].labels, images: plans }) }
}

function planImage({ architecture, tag, packages }) {
  const debian = fetchDebian(architecture, debianPackages, debianFiles)
  const { commit, date } = origin()
  const ours = packagesFor(packages, architecture)
  const sbom = formatSbom({ type: 'container', packages: ours, node: imageNode, debian, architecture, version: tag })
  // The lowest change least, so that a new version of the program is a small download.
  const layers = [
    { what: `packages of Debian 12: ${debian.map((each) => each.name).join(', ')}`, entries: systemLayer(debian) },
    { what: `Node ${imageNode}`, entries: nodeEntries({ architecture, ...nodePlaces }) },
    { what: `kube-proxy-ts ${tag}`, entries: programLayer(architecture, sbom) },
  ]
  const labels = {
    'org.opencontainers.image.title': 'kube-proxy-ts',
    'org.opencontainers.image.description': 'The Kubernetes node service proxy, in TypeScript',
    'org.opencontainers.image.licenses': 'Apache-2.0',
    'org.opencontainers.image.version': tag,
    ...(commit !== '' && { 'org.opencontainers.image.revision': commit }),
  }
  const config = {
    Entrypoint: ['/usr/local/bin/kube-proxy'],
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
    WorkingDir: '/',
  }
  return { architecture, created: date, config, labels, layers, sbom, debian }
}

function systemLayer(debian) {
  const entries = new Map([
    ...mergedLinks(),
    ['etc/passwd', textEntry('root:x:0:0:root:/:/sbin/nologin\n')],
    ['etc/group', textEntry('root:x:0:\n')],
    ['etc/nsswitch.conf', textEntry('hosts: files dns\n')],
    ['tmp', { kind: 'folder', mode: 0o1777 }],
    // Where a DaemonSet mounts things: a read-only root has to have them.
    ...['dev', 'proc', 'run', 'sys', 'usr/lib/modules', 'var/lib/kube-proxy'].map((path) => [path, { kind: 'folder' }]),
    ['run/xtables.lock', textEntry('')],
  ])
  for (const each of debian) {
    for (const [path, entry] of debianEntries(unpackDebian(each))) {
      // Of a package that is here for its licences, no more than those.
      if (!debianFiles.includes(each.name) || /common-licenses|os-release|copyright/.test(path))
        entries.set(path, entry)
    }
    // Scanners of vulnerabilities look here, as in the images of distroless.
    entries.set(`var/lib/dpkg/status.d/${each.name}`, textEntry(each.control))
  }
  return entries
}

function programLayer(architecture, sbom) {
  return new Map([
    ['usr/local/bin/kube-proxy', { kind: 'link', target: `../../../${home}/kube-proxy.cjs` }],
    ['usr/local/share/doc/kube-proxy/LICENSE', textEntry(readFileSync(join(checkout, 'LICENSE')))],
    ['usr/local/share/doc/kube-proxy/LICENSES.txt', textEntry(readFileSync(released('LICENSES.txt')))],
    ['usr/local/share/doc/kube-proxy/sbom.cdx.json', textEntry(sbom)],
    ...programEntries({ architecture, home, node: `/${nodePlaces.program}` }),
  ])
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', multiple: true, default: Object.keys(processors) },
      name: { type: 'string', default: 'docker.io/library/kube-proxy-ts' },
      tag: { type: 'string' },
      out: { type: 'string', default: join(checkout, '.cache', 'image') },
      root: { type: 'string' },
      'with-ui': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(help)
  } else {
    const unknown = values.arch.filter((each) => !(each in processors))
    if (unknown.length > 0) throw new Error(`Cannot build for --arch ${unknown[0]}: must be amd64 or arm64`)
    const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
    const { arch: architectures, name, tag = version, out, root, 'with-ui': withUi } = values
    if (root !== undefined) {
      if (architectures.length !== 1) throw new Error('Cannot write --root: must be for exactly one --arch')
      await buildRoot({ architecture: architectures[0], tag, file: root, withUi })
      process.exit(0)
    }
    const packages = await bundle(undefined, { withUi })
    const { images } = await buildImages({ architectures, name, tag, out, packages })
    const files = images.flatMap(({ file, sbomFile }) => [file, sbomFile])
    const sums = files.map((path) => `${sha256(readFileSync(path))}  ${path.split('/').at(-1)}\n`)
    writeFileSync(join(out, 'SHA256SUMS'), sums.join(''))
    for (const { file, digest, compressed } of images) {
      console.log(`${file}\n  ${name}:${tag} ${digest} ${(compressed / 1e6).toFixed(1)} MB`)
    }
  }
}
