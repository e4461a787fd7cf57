#!/usr/bin/env node
// Boots a kernel as Debian ships it in qemu, with the files of our image, and tries there what guest.mjs has: scripts/kernels --help.

import { execFileSync, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { fetchDebian, unpackDebian } from '../../scripts/release/debian.mjs'
import { folderEntries } from '../../scripts/release/tree.mjs'
import { formatCpio } from './cpio.mjs'

/** Which Debian has which kernel. */
export const series = { 6.1: 'bookworm', 6.12: 'trixie', 7.2: 'sid' }
export const allModes = ['nftables', 'iptables', 'ipvs', 'userspace']

const machines = {
  amd64: ['qemu-system-x86_64', ['-machine', 'q35', '-cpu', 'max'], 'ttyS0'],
  arm64: ['qemu-system-aarch64', ['-machine', 'virt', '-cpu', 'cortex-a72'], 'ttyAMA0'],
}

/** Of which commit the image is. */
const buildFile = 'usr/local/lib/kube-proxy/build.json'

/** What the kernel starts. Node sees no terminal. */
const init = `#!/bin/busybox sh
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; export PATH
busybox mount -t proc proc /proc; busybox mount -t sysfs sys /sys; busybox mount -t tmpfs run /run
busybox mount -t devtmpfs dev /dev 2>/dev/null; busybox mkdir -p /run/netns
node /machine/guest.mjs $(busybox sed -n 's/.*modes=\\([a-z,]*\\).*/\\1/p' /proc/cmdline | busybox tr , ' ') 2>&1 | busybox cat
busybox poweroff -f
`

/** Answers what the guest printed, a line each. `onLine` gets them at once. `image`: the folder with the archives of scripts/image. */
export async function tryKernel({ version, architecture, modes, image, timeoutSeconds, onLine }) {
  const folder = mkdtempSync(join(tmpdir(), 'machine-'))
  try {
    const kernel = findKernel(version, architecture)
    const root = join(folder, 'root')
    fillRoot({ root, architecture, kernel, image })
    const { commit = 'unknown', treeState } = JSON.parse(readFileSync(join(root, buildFile), 'utf8'))
    const commitName = `${commit.slice(0, 9)}${treeState === 'clean' ? '' : ' with changes'}`
    const ramdisk = join(folder, 'ramdisk')
    writeFileSync(ramdisk, formatCpio(folderEntries(root, '')))
    rmSync(root, { recursive: true })
    const lines = await boot({ kernel, ramdisk, architecture, modes, timeoutSeconds, onLine })
    return { kernel: kernel.name, commit: commitName, lines }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function findKernel(version, architecture) {
  const packages = fetchDebian(architecture, [`linux-image-cloud-${architecture}`], [], series[version])
  const found = packages.find(({ name }) => name.startsWith(`linux-image-${version}.`))
  if (found === undefined) throw new Error(`Cannot find linux ${version}: Debian ${series[version]} has none`)
  const release = found.name.replace(/^linux-image-/, '')
  // Of sid, the kernel and its modules are packages of their own.
  const parts = packages
    .filter(({ name }) => name.startsWith('linux-') && name.endsWith(`-${release}`))
    .map(unpackDebian)
  const find = (...places) =>
    parts.flatMap((part) => places.map((each) => join(part, each))).filter((each) => existsSync(each))
  const [image] = find(`boot/vmlinuz-${release}`, `usr/lib/modules/${release}/vmlinuz`)
  return {
    name: `${release} ${found.version}`,
    release,
    image,
    modules: find(`lib/modules/${release}`, `usr/lib/modules/${release}`),
  }
}

function fillRoot({ root, architecture, kernel, image }) {
  const archive = join(image, `kube-proxy-ts-machine-${architecture}.tar`)
  mkdirSync(root)
  const show = (file) => execFileSync('tar', ['-xOf', archive, file], { maxBuffer: 1 << 30 })
  const [{ Layers }] = JSON.parse(show('manifest.json').toString())
  for (const layer of Layers) execFileSync('tar', ['-xpz', '-C', root], { input: show(layer) })
  for (const each of fetchDebian(architecture, ['busybox-static', 'iproute2', 'perl-base'])) {
    const copy = 'tar -C "$1" -c . | tar -C "$2" -x --keep-directory-symlink'
    execFileSync('sh', ['-c', copy, 'sh', unpackDebian(each), root])
  }
  const place = join(root, 'usr/lib/modules', kernel.release)
  // What a node's network takes; the rest would fill the guest's memory.
  const wanted = /^(modules\..*|kernel(\/(net|lib|crypto|arch|drivers)(\/.*)?)?)$/
  const driver = /^kernel\/drivers(\/net(\/(veth|dummy).*)?)?$/
  for (const modules of kernel.modules)
    cpSync(modules, place, {
      recursive: true,
      filter: (path) => {
        const name = path.slice(modules.length + 1)
        return name === '' || (wanted.test(name) && (!name.startsWith('kernel/drivers') || driver.test(name)))
      },
    })
  execFileSync('depmod', ['--basedir', root, kernel.release], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` },
  })
  mkdirSync(join(root, 'machine'))
  for (const name of ['guest.mjs', 'agent.cjs', 'sctp.pl'])
    cpSync(join(import.meta.dirname, name), join(root, 'machine', name))
  writeFileSync(join(root, 'init'), init, { mode: 0o755 })
}

function boot({ kernel, ramdisk, architecture, modes, timeoutSeconds, onLine }) {
  const [program, machine, console] = machines[architecture]
  const words = `console=${console} rdinit=/init quiet panic=-1 modes=${modes.join(',')}`
  const memory = ['-m', '2G', '-smp', '2', '-accel', 'tcg,thread=multi', '-nographic', '-no-reboot', '-nic', 'none']
  const args = [...machine, ...memory, '-kernel', kernel.image, '-initrd', ramdisk, '-append', words]
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutSeconds * 1000)
  const lines = []
  let pending = ''
  child.stdout.setEncoding('utf8').on('data', (text) => {
    // The firmware clears the screen before the first line.
    const plain = stripVTControlCharacters(pending + text).replaceAll('\r', '')
    const parts = plain.split('\n')
    pending = parts.pop()
    for (const line of parts) {
      lines.push(line)
      onLine(line)
      // Not every machine can turn itself off.
      if (line === 'FINISHED') child.kill()
    }
  })
  return new Promise((resolve, reject) => {
    child.once('error', ({ message }) =>
      reject(new Error(`Cannot start ${program}: ${message} (Debian: qemu-system-x86, qemu-system-arm)`)),
    )
    child.once('close', () => {
      clearTimeout(timer)
      resolve(lines)
    })
  })
}
