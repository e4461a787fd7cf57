// The image of scripts/image: what is in it, and that it serves with the rights of the manifests. release.test.ts makes it twice.

import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { imageNode } from '../../scripts/release/node-runtimes.mjs'
import { checkout } from '../support/checkout.ts'
import { Image } from './image.ts'
import { describeLeastRights } from './least-rights.suite.ts'
import { whyNoNpm } from './packed.ts'

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'
const folder = mkdtempSync(join(tmpdir(), 'images-'))
const noNpm = whyNoNpm()

/** Builds it as a user does. */
function build(): string {
  const args = ['--arch', architecture, '--tag', 'test', '--out', folder]
  execFileSync('scripts/image', args, { cwd: checkout, stdio: ['ignore', 'ignore', 'pipe'] })
  return join(folder, `kube-proxy-ts-test-${architecture}.tar`)
}

/** A proxy and its page, out of a folder with the files of the image; prints what the page is made of. */
const servePage = `
  cd "$1"
  ip link set lo up
  for each in proc dev; do mount --bind "/$each" "$each"; done
  mkdir -p run/manifests
  chroot . usr/local/bin/kube-proxy --proxy-mode=nftables --manifests=/run/manifests --hostname-override=node >run/log 2>&1 &
  proxy=$!
  until ls run/kube-proxy-ts/*.sock >/dev/null 2>&1 || ! kill -0 $proxy 2>/dev/null; do sleep 0.1; done
  chroot . usr/local/bin/kube-proxy ui >run/ui 2>&1 &
  ui=$!
  until grep -q token= run/ui || ! kill -0 $ui 2>/dev/null; do sleep 0.1; done
  cat run/log run/ui >&2
  url=$(sed -n 's#^ *\\(http://.*token=.*\\)#\\1#p' run/ui)
  curl -s "\${url%%/?token*}/page.js?token=\${url##*token=}"
  kill $ui $proxy
  wait
`

function sha256(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** Every file below a folder, with its mode, and what is in it or where it leads. */
function filesOf(root: string): Map<string, string> {
  const describeFile = (path: string) => {
    const { mode } = lstatSync(path)
    const kind = mode & constants.S_IFMT
    if (kind === constants.S_IFLNK) return `link to ${readlinkSync(path)}`
    return `${mode.toString(8)} ${kind === constants.S_IFREG ? sha256(readFileSync(path)) : ''}`
  }
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).sort()
  return new Map(names.map((name) => [name, describeFile(join(root, name))]))
}

describe('the image', () => {
  let archive: string
  let image: Image
  beforeEach(({ skip }) => {
    if (noNpm !== undefined) skip(noNpm)
  })
  beforeAll(() => {
    if (noNpm !== undefined) return
    // Another one can be put to the same tests.
    archive = process.env['IMAGE'] ?? build()
    image = new Image(archive)
  })
  afterAll(() => {
    image?.[Symbol.dispose]()
    rmSync(folder, { recursive: true })
  })

  test('is the same when the Dockerfile makes it', () => {
    const file = join(folder, 'root.tar')
    const root = join(folder, 'root')
    execFileSync('scripts/image', ['--arch', architecture, '--tag', 'test', '--root', file], { cwd: checkout })
    mkdirSync(root)
    execFileSync('tar', ['-xpf', file, '-C', root])
    expect(filesOf(root)).toEqual(filesOf(image.root))
    const { config } = image.json(image.docker.Config) as {
      config: { Entrypoint: string[]; Env: string[]; WorkingDir: string }
    }
    const last = readFileSync(join(checkout, 'deploy/Dockerfile'), 'utf8').split(/^FROM scratch$/m)[1]
    expect(last!.trim().split('\n')).toEqual([
      'COPY --from=build /image/ /',
      ...config.Env.map((each) => `ENV ${each}`),
      `WORKDIR ${config.WorkingDir}`,
      `ENTRYPOINT ${JSON.stringify(config.Entrypoint)}`,
    ])
  })

  test('is under 80 MB, and each part of it is what its digest says', () => {
    const index = image.json('index.json') as { manifests: [{ digest: string; size: number }] }
    const path = (digest: string) => `blobs/${digest.replace(':', '/')}`
    type Part = { digest: string; size: number }
    const manifest = image.json(path(index.manifests[0].digest)) as { config: Part; layers: Part[] }
    const parts = [index.manifests[0], manifest.config, ...manifest.layers]
    for (const { digest, size } of parts) {
      const content = readFileSync(join(image.blobs, path(digest)))
      expect({ digest: `sha256:${sha256(content)}`, size: content.length }).toEqual({ digest, size })
    }
    expect(parts.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(80_000_000)
    const config = image.json(path(manifest.config.digest)) as { architecture: string; rootfs: { diff_ids: string[] } }
    const plain = manifest.layers.map(({ digest }) => gunzipSync(readFileSync(join(image.blobs, path(digest)))))
    expect(config.rootfs.diff_ids).toEqual(plain.map((content) => `sha256:${sha256(content)}`))
    expect(config.architecture).toBe(architecture)
    expect(image.docker).toEqual({
      Config: path(manifest.config.digest),
      RepoTags: ['kube-proxy-ts:test'],
      Layers: manifest.layers.map(({ digest }) => path(digest)),
    })
  })

  test('has what runs, no shell, no npm and no sandbox', () => {
    const programs = ['usr/bin', 'usr/sbin', 'usr/local/bin'].flatMap((each) => readdirSync(join(image.root, each)))
    for (const name of ['kube-proxy', 'node', 'modprobe']) expect(programs).toContain(name)
    for (const kind of ['nft', 'legacy']) {
      for (const end of ['', '-save', '-restore']) {
        for (const family of ['iptables', 'ip6tables']) expect(programs).toContain(`${family}-${kind}${end}`)
      }
    }
    expect(programs.filter((name) => /^(ba|da)?sh$|npm|npx|apt|dpkg/.test(name))).toEqual([])
    expect(readdirSync(join(image.root, 'usr/local/lib/kube-proxy')).filter((each) => /sandbox/.test(each))).toEqual([])
  })

  test('tells what is in it, with licences', () => {
    const docs = join(image.root, 'usr/local/share/doc/kube-proxy')
    const sbom = JSON.parse(readFileSync(join(docs, 'sbom.cdx.json'), 'utf8')) as {
      components: { name: string; version: string; purl: string }[]
    }
    const names = sbom.components.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['yaml', 'koffi', 'node', 'libc6', 'iptables', 'kmod']))
    expect(names).not.toContain('vitest')
    expect(sbom.components.every(({ version }) => version !== '')).toBe(true)
    for (const { name, purl } of sbom.components) {
      if (!purl.startsWith('pkg:deb/')) continue
      // The copyright of a package may be a link to that of another one of the same source.
      const shown = spawnSync('chroot', [
        image.root,
        '/usr/local/bin/node',
        '-p',
        `fs.existsSync('/usr/share/doc/${name}/copyright')`,
      ])
      expect(shown.stdout.toString().trim(), name).toBe('true')
    }
    for (const file of ['LICENSE', 'LICENSES.txt']) expect(existsSync(join(docs, file))).toBe(true)
    expect(existsSync(join(image.root, 'usr/local/share/doc/node/LICENSE'))).toBe(true)
  })

  test('starts as kubeadm starts it', () => {
    const command = [image.root, '/usr/local/bin/kube-proxy', '--version']
    expect(spawnSync('chroot', command, { encoding: 'utf8' }).stdout).toMatch(/^Kubernetes v1\.37\.0\+ts\./)
  })

  test('has what V8 made of each part, by the Node that is in it and by no other', () => {
    const files = readdirSync(join(image.root, 'usr/local/lib/kube-proxy'))
    const parts = files.filter((each) => each.endsWith('.cjs') && each !== 'kube-proxy.cjs')
    const suffix = `.v${imageNode}-${process.arch}.bin`
    expect(files.filter((each) => each.endsWith('.bin'))).toEqual(parts.map((each) => each + suffix).sort())
  })

  test('has the page of kube-proxy ui if that is asked for, serves it, and has none of it otherwise', () => {
    const ofPage = (root: string) =>
      readdirSync(join(root, 'usr/local/lib/kube-proxy')).filter((each) => /^(page|ui)\.(js|cjs|css)$/.test(each))
    expect(ofPage(image.root)).toEqual([])
    const without = spawnSync('chroot', [image.root, '/usr/local/bin/kube-proxy', 'ui'], { encoding: 'utf8' })
    expect(without).toMatchObject({ status: 1, stderr: expect.stringContaining('without it') as string })
    const file = join(folder, 'with-ui.tar')
    const root = join(folder, 'with-ui')
    const args = ['--arch', architecture, '--tag', 'test', '--with-ui', '--root', file]
    execFileSync('scripts/image', args, { cwd: checkout, stdio: ['ignore', 'ignore', 'pipe'] })
    mkdirSync(root)
    execFileSync('tar', ['-xpf', file, '-C', root])
    expect(ofPage(root)).toEqual(['page.css', 'page.js', 'ui.cjs'])
    // In a network and with mounts of its own, which go with it.
    const { stdout, stderr } = spawnSync('unshare', ['--net', '--mount', 'sh', '-c', servePage, 'sh', root], {
      encoding: 'utf8',
    })
    expect(stdout, stderr).toBe(readFileSync(join(root, 'usr/local/lib/kube-proxy/page.js'), 'utf8'))
  })

  describe('has no more rights than it needs:', () => describeLeastRights(() => archive, noNpm))
})
