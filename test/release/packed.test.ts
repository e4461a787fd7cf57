// The program of `npm pack`: with Node and nothing else, on every version of Node that it is for.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nodeRuntime, testedNodes } from '../../scripts/release/node-runtimes.mjs'
import type { ModeName } from '../conformance/modes.ts'
import { aService, aSlice } from '../support/builders.ts'
import { checkout } from '../support/checkout.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { Packed, whyNoNpm } from './packed.ts'

let packed: Packed
beforeAll(() => {
  packed = new Packed()
})
afterAll(() => packed[Symbol.dispose]())

/** Nothing of the machine's but what is needed to start. */
function run(args: readonly string[], node = process.execPath) {
  return spawnSync(node, [packed.program, ...args], { encoding: 'utf8', cwd: '/', env: {} })
}

test('has no packages to install, no sources, no sandbox and no page', () => {
  const manifest = JSON.parse(readFileSync(join(packed.folder, 'package.json'), 'utf8')) as Record<string, unknown>
  expect(manifest['dependencies']).toBeUndefined()
  const files = readdirSync(packed.folder, { recursive: true, encoding: 'utf8' })
  expect(files.filter((file) => /\.ts$|node_modules|^src|sandbox/.test(file))).toEqual([])
  expect(files.filter((file) => /page\.(js|css)|\bui\b/.test(file))).toEqual([])
  expect(run(['ui'])).toMatchObject({ status: 1, stderr: expect.stringContaining('without it') as string })
  expect(run(['sandbox'])).toMatchObject({ status: 1, stderr: expect.stringContaining('without it') as string })
})

test('its program can be started by its name, and has the licences of what is in it', () => {
  expect(statSync(packed.program).mode & 0o111).not.toBe(0)
  expect(readFileSync(packed.program, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  expect(spawnSync(packed.program, ['--version'], { encoding: 'utf8' }).stdout).toMatch(/^Kubernetes v/)
  const licences = readFileSync(join(packed.folder, 'dist/release/LICENSES.txt'), 'utf8')
  for (const name of ['yaml', 'koffi']) expect(licences).toMatch(new RegExp(`^${name} \\d`, 'm'))
})

test.skipIf(!existsSync(join(checkout, '.git')))('names the commit', () => {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: checkout, encoding: 'utf8' }).stdout.trim()
  expect(run(['--version']).stdout).toContain(`.g${commit.slice(0, 12)}`)
  expect(run(['--version=raw']).stdout).toContain(`GitCommit:"${commit}"`)
})

test('npm puts it where the systemd unit looks for it, without a network', () => {
  const unit = readFileSync(join(checkout, 'deploy/kube-proxy.service'), 'utf8')
  const [, prefix = '', program = ''] = /^ExecStart=(\/opt\/kube-proxy-ts)(\S+) --config=/m.exec(unit) ?? []
  expect(unit).toContain(`npm install --global --prefix ${prefix} `)
  const home = join(packed.folder, 'opt')
  const args = ['install', '--global', '--offline', '--no-audit', '--no-fund', '--prefix', home, packed.archive]
  expect(spawnSync('npm', args, { encoding: 'utf8' })).toMatchObject({ status: 0 })
  expect(spawnSync(join(home, program), ['--version'], { encoding: 'utf8' }).stdout).toMatch(/^Kubernetes v/)
})

test('names sources in its log, not bundles, and finds them by --vmodule', () => {
  const flags = ['--proxy-mode=nftables', '--kubeconfig=/nonexistent']
  const [, file, line] = / ([\w-]+\.ts):(\d+)\] "Version info"/.exec(run(flags).stderr) ?? []
  const source = readFileSync(join(checkout, 'src/cli', file ?? 'none'), 'utf8').split('\n')
  expect(source[Number(line) - 1]).toContain("log.info('Version info'")
  expect(run(flags).stderr).not.toContain('FLAG:')
  expect(run([...flags, '--vmodule=node-*=9,load-options=1']).stderr).toMatch(/ load-options\.ts:\d+\] "FLAG: /)
})

describe('what V8 made of its parts', () => {
  /** Tells, for each part that is loaded, whether V8 was given what it had made of it, and took it. */
  const witness = `
    const vm = require('node:vm')
    vm.Script = class extends vm.Script {
      constructor(text, options) {
        super(text, options)
        const { filename, cachedData } = options
        console.error(filename, cachedData === undefined ? 'compiled' : this.cachedDataRejected ? 'refused' : 'taken')
      }
    }`

  /** A copy of the program, and how it loads its parts. */
  function loading(change: (file: (name: string) => string) => void) {
    const folder = join(packed.folder, 'copy')
    cpSync(join(packed.folder, 'dist/release'), folder, { recursive: true })
    try {
      const bin = readdirSync(folder)
        .find((name) => name.startsWith('lib.cjs.'))!
        .slice('lib.cjs'.length)
      change((name) => join(folder, name.replace('.bin', bin)))
      writeFileSync(join(folder, 'witness.cjs'), witness)
      const args = ['--require', join(folder, 'witness.cjs'), join(folder, 'kube-proxy.cjs'), '--version']
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env: {} })
      const parts = Object.fromEntries(stderr.split('\n').map((line) => line.split(' ') as [string, string]))
      return {
        status,
        isRight: stdout.startsWith('Kubernetes v'),
        lib: parts['lib.cjs'],
        program: parts['program.cjs'],
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  }

  test('is used by the Node that packed it', () => {
    expect(loading(() => {})).toEqual({ status: 0, isRight: true, lib: 'taken', program: 'taken' })
  })

  const spoil: Record<string, (file: (name: string) => string) => void> = {
    missing: (file) => rmSync(file('lib.cjs.bin')),
    empty: (file) => truncateSync(file('lib.cjs.bin')),
    'cut off': (file) => truncateSync(file('lib.cjs.bin'), 20_000),
    damaged: (file) => {
      const bytes = readFileSync(file('lib.cjs.bin'))
      for (let i = 2000; i < 6000; i += 7) bytes[i]! ^= 0x55
      writeFileSync(file('lib.cjs.bin'), bytes)
    },
    'of another part': (file) => cpSync(file('system.cjs.bin'), file('lib.cjs.bin')),
    'of another build of Node': (file) => {
      const bytes = readFileSync(file('lib.cjs.bin'))
      bytes[8]! ^= 1
      writeFileSync(file('lib.cjs.bin'), bytes)
    },
    'older than the part, which is as long as before': (file) => {
      const text = readFileSync(file('lib.cjs'), 'utf8')
      writeFileSync(file('lib.cjs'), text.replace('//#region', '//!region'))
    },
    'older than the part': (file) => appendFileSync(file('lib.cjs'), '\n'),
    'writable by others': (file) => chmodSync(file('lib.cjs.bin'), 0o666),
    ...(process.getuid?.() === 0 && { "another user's": (file) => chownSync(file('lib.cjs.bin'), 65534, 65534) }),
  }

  test.for(Object.keys(spoil))('is not used when it is %s', (how) => {
    expect(loading(spoil[how]!)).toEqual({ status: 0, isRight: true, lib: 'compiled', program: 'taken' })
  })

  test('is refused by V8 when Node is given other flags', () => {
    const args = ['--stack-size=900', packed.program, '--version']
    expect(spawnSync(process.execPath, args, { encoding: 'utf8', env: {} })).toMatchObject({ status: 0, stderr: '' })
  })
})

/** Until its first output, in milliseconds. */
async function firstOutput(args: readonly string[]): Promise<number> {
  const started = performance.now()
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  await once(child.stderr, 'data')
  const passedMs = performance.now() - started
  child.kill('SIGKILL')
  await once(child, 'exit')
  return passedMs
}

test('loads little before its first line: no other command, and none of the larger modules of Node', () => {
  const loaded = new Set<string>()
  const load = (file: string) => {
    if (loaded.has(file)) return
    loaded.add(file)
    if (file.startsWith('node:')) return
    const text = readFileSync(join(packed.folder, 'dist/release', file), 'utf8')
    for (const [, from] of text.matchAll(/^(?:const|let) [^;]*? = (?:\S*\()?require\("([^"]+)"\)/gm)) {
      load(from!.replace('./', ''))
    }
  }
  load('program.cjs')
  const modules = ['node:fs', 'node:os', 'node:path']
  const ours = /^(lib|program|rolldown-runtime)\.cjs$/
  expect([...loaded].filter((file) => !ours.test(file) && !modules.includes(file))).toEqual([])
})

test('says its first line in 80 ms, on a machine where Node itself takes 40', async () => {
  const manifests = join(packed.folder, 'manifests')
  mkdirSync(manifests)
  // It is stopped at its first line, long before it touches the kernel.
  const flags = ['--proxy-mode=nftables', `--manifests=${manifests}`]
  // The best of each, in turns, since the machine does other things, too: the more turns, the less they matter.
  let [node, program] = [Infinity, Infinity]
  for (let turn = 0; turn < 40 && (turn < 5 || program / node >= 2); turn++) {
    node = Math.min(node, await firstOutput(['-e', 'console.error(1)']))
    program = Math.min(program, await firstOutput([packed.program, ...flags]))
  }
  expect(program / node, `${program.toFixed()} ms, Node itself ${node.toFixed()} ms`).toBeLessThan(2)
})

const noNpm = whyNoNpm()

describe.each(testedNodes)('on Node %s', (version) => {
  let rig: Rig
  let node: string
  beforeAll(async () => {
    if (noNpm !== undefined) return
    node = join(nodeRuntime(version), 'bin/node')
    rig = await openRig()
  })
  afterAll(async () => rig?.[Symbol.asyncDispose]())

  test.for<ModeName>(['nftables', 'iptables', 'userspace'])('serves in %s mode', async (mode, { skip }) => {
    const reason = noNpm ?? whyNotRun(mode)
    if (reason !== undefined) return skip(reason)
    expect(run(['--version=raw'], node).stdout).toContain(`NodeVersion:"v${version}"`)
    const service = aService({ type: 'NodePort', families: [4] })
    rig.cluster.put(service, aSlice(service, ['localB'], { family: 4 }))
    const command = [node, packed.program]
    const { kubeconfig } = rig.cluster
    await using proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig, command })
    await rig.settled()
    const answer = await tcpProbe(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
    expect(answer, proxy.logTail(20)).toMatchObject({ kind: 'answered', greeting: { host: 'localB' } })
    expect(await proxy.stop('SIGTERM'), proxy.logTail(20)).toBe('0')
  })
})
