// A release as one command: npm run release -- VERSION. --help says what it makes.

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { bundle } from './bundle.mjs'
import { formatChart } from './chart.mjs'
import { checkout } from './checkout.mjs'
import { formatDeb } from './deb.mjs'
import { buildImages } from './image.mjs'
import { buildPlugin } from './kubectl-plugin.mjs'
import { imageNode } from './node-runtimes.mjs'
import { formatNotes, sectionOf } from './notes.mjs'
import { sha256 } from './oci.mjs'
import { origin, packagesFor, processors } from './program.mjs'
import { formatProvenance, payloadType } from './provenance.mjs'
import { formatSbom } from './sbom.mjs'
import { formatEnvelope, formatPublicKey, readKey, signBlob } from './sign.mjs'
import { formatTar } from './tar.mjs'

const help = `npm run release -- VERSION: makes all files of a release, without docker and without a registry.

  --out FOLDER      .cache/release/VERSION, if not given; what is in it is replaced
  --image NAME      the image's name for a registry: docker.io/library/kube-proxy-ts, if not given
  --key FILE        signs each file, and the provenance; RELEASE_KEY_PASSPHRASE, if the key has a passphrase
  --source URL      where the repository is, for the provenance and krew
  --downloads URL   where these files will be, for krew; without it, krew installs the plugin with --archive
  --builder URI     who builds, for the provenance: urn:kube-proxy-ts:local, if not given
  --draft           the notes are the changelog's section Unreleased, and the checkout may have changes

VERSION is that of package.json: npm run set-version -- VERSION writes it wherever it stands, and names the changelog's section.

It takes what scripts/image takes. Twice it makes the same bytes, signatures aside.
`

const what = {
  image: 'the image for amd64 and arm64, for a registry: `skopeo copy --all oci-archive:FILE docker://...`',
  amd64: 'the image for `ctr -n k8s.io images import`, `docker load -i`, `podman load -i`; amd64',
  arm64: 'the same; arm64',
  sbom: 'what is in it, as CycloneDX',
  chart: 'the Helm chart',
  chartArchive: 'the Helm chart for a registry: `skopeo copy oci-archive:FILE docker://...`',
  npm: 'the package of npm: needs nothing but Node',
  deb: 'the package for Debian and Ubuntu, with Node and the systemd unit',
  plugin: '`kubectl kubeproxy`, for krew or any folder of PATH: needs nothing but Node',
  krew: 'the manifest of it: `kubectl krew install --manifest=FILE --archive=ARCHIVE`',
  provenance: 'from what all this was made, as in-toto and SLSA have it',
}

export async function release({ version, out, image, key, source, downloads, builder, isDraft }) {
  const section = sectionOf(readFileSync(join(checkout, 'CHANGELOG.md'), 'utf8'), isDraft ? 'Unreleased' : version)
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out, { recursive: true })
  const write = (name, content) => writeFileSync(join(out, name), content)

  const packages = await bundle()
  const built = origin()
  if (!isDraft && built.treeState !== 'clean') {
    throw new Error('Cannot release: the checkout has changes that are not committed, or is no checkout of git')
  }
  // This comes first: an image adds what its Node compiles.
  const npm = `kube-proxy-ts-${version}.tgz`
  const assets = [{ name: npm, what: what.npm }]
  write(npm, packForNpm())
  writeSbom(npm, { type: 'application', packages })

  for (const architecture of Object.keys(processors)) {
    const about = { packages: packagesFor(packages, architecture), architecture, node: imageNode }
    const name = `kube-proxy-ts_${version}_${architecture}.deb`
    assets.push({ name, what: `${what.deb}; ${architecture}` })
    const sbom = writeSbom(name, { type: 'application', ...about })
    write(name, formatDeb({ version, architecture, sbom }))
  }

  const { images, index } = await buildImages({
    architectures: Object.keys(processors),
    name: image,
    tag: version,
    out,
    packages,
  })
  for (const { architecture, file, sbomFile } of images) {
    const name = `kube-proxy-ts-${version}-image-${architecture}.tar`
    renameSync(file, join(out, name))
    renameSync(sbomFile, join(out, `${name}.cdx.json`))
    assets.push({ name, what: what[architecture] }, { name: `${name}.cdx.json`, what: what.sbom })
  }
  const whole = index()
  const wholeName = `kube-proxy-ts-${version}-image.oci.tar`
  write(wholeName, whole.archive)
  assets.push({ name: wholeName, what: what.image })

  const { chart, archive } = formatChart({ version, image, created: built.date })
  write(`kube-proxy-ts-chart-${version}.tgz`, chart)
  write(`kube-proxy-ts-chart-${version}.oci.tar`, archive)
  assets.push({ name: `kube-proxy-ts-chart-${version}.tgz`, what: what.chart })
  assets.push({ name: `kube-proxy-ts-chart-${version}.oci.tar`, what: what.chartArchive })

  await addPlugin()

  const hashed = assets.map(({ name }) => ({ name, sha256: sha256(readFileSync(join(out, name))) }))
  const facts = { version, assets: hashed, origin: built, source, builder, image, packages, images }
  const statement = formatProvenance(facts)
  const provenance = `kube-proxy-ts-${version}.intoto.json${key === undefined ? '' : 'l'}`
  write(provenance, key === undefined ? `${JSON.stringify(statement)}\n` : formatEnvelope(key, payloadType, statement))
  assets.push({ name: provenance, what: what.provenance })

  const named = { version, section, image, digest: whole.digest, assets, isSigned: key !== undefined }
  write('RELEASE_NOTES.md', formatNotes(named))
  const files = readdirSync(out).sort()
  write('SHA256SUMS', files.map((name) => `${sha256(readFileSync(join(out, name)))}  ${name}\n`).join(''))
  if (key !== undefined) {
    write('release.pub', formatPublicKey(key))
    for (const name of [...files, 'SHA256SUMS']) write(`${name}.sig`, signBlob(key, readFileSync(join(out, name))))
  }
  return { files: readdirSync(out).sort(), digest: whole.digest }

  async function addPlugin() {
    const folder = mkdtempSync(join(tmpdir(), 'kubectl-plugin-'))
    try {
      const name = `kubectl-kubeproxy-${version}.tar.gz`
      const uri = downloads === undefined ? name : `${downloads}/${name}`
      const plugin = await buildPlugin({ out: folder, version, uri, homepage: source })
      write(name, readFileSync(plugin.archive))
      assets.push({ name, what: what.plugin })
      writeSbom(name, { type: 'application', packages: plugin.packages })
      write('kubeproxy.yaml', readFileSync(plugin.manifest))
      assets.push({ name: 'kubeproxy.yaml', what: what.krew })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  function writeSbom(name, facts) {
    const sbom = formatSbom({ version, ...facts })
    write(`${name}.cdx.json`, sbom)
    assets.push({ name: `${name}.cdx.json`, what: what.sbom })
    return sbom
  }
}

/** As `npm pack` makes it, with modes that do not depend on the umask of the checkout. */
function packForNpm() {
  const args = ['pack', '--json', '--dry-run', '--ignore-scripts']
  const [{ files }] = JSON.parse(execFileSync('npm', args, { cwd: checkout, stdio: 'pipe' }))
  const entries = files.map(({ path, mode }) => {
    const content = readFileSync(join(checkout, path))
    return [`package/${path}`, { kind: 'file', mode: (mode & 0o100) === 0 ? 0o644 : 0o755, content }]
  })
  return gzipSync(formatTar(new Map(entries)), { level: 9 })
}

if (import.meta.filename === process.argv[1]) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: 'string' },
      image: { type: 'string', default: 'docker.io/library/kube-proxy-ts' },
      key: { type: 'string' },
      source: { type: 'string' },
      downloads: { type: 'string' },
      builder: { type: 'string', default: 'urn:kube-proxy-ts:local' },
      draft: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { version: ours } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'))
  if (values.help) {
    process.stdout.write(help)
  } else {
    const [version] = positionals
    if (version !== ours || positionals.length !== 1) {
      console.error(
        `Cannot release ${positionals.join(' ') || 'nothing'}: VERSION must be ${ours}, that of package.json`,
      )
      process.exit(2)
    }
    const { out = join(checkout, '.cache', 'release', version), key: file, draft: isDraft, ...rest } = values
    const key = file === undefined ? undefined : readKey(file, process.env.RELEASE_KEY_PASSPHRASE)
    const { files, digest } = await release({ version, out, key, isDraft, ...rest })
    console.log(files.map((name) => join(out, name)).join('\n'))
    console.log(`${values.image}:${version} ${digest}`)
  }
}
