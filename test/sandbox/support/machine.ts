// The machine that a sandbox is started on: a network namespace of the test's own, with nothing in it but loopback, and a
// place of its own for the names of networks.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { mustCall } from '../../../src/system/libc.ts'
import { unshareNetwork } from '../../../src/system/netns.ts'
import { Rtnetlink } from '../../../src/links/rtnetlink.ts'
import { formatCidr } from '../../../src/lib/ip.ts'

const NAMES = '/run/netns'
const CLONE_NEWNS = 0x00020000
const MS_PRIVATE_FROM_HERE = 0x44000
let isEntered = false

/** Moves this process, and what it starts from now on, to the machine. Once per test file. */
export function enterMachine(): void {
  if (isEntered) return
  isEntered = true
  unshareNetwork()
  hideNames()
  using links = new Rtnetlink()
  links.setUp('lo')
}

/** Sandboxes of tests beside this one have the same names. What this thread, and what it starts, sees there is empty. */
function hideNames(): void {
  mustCall('create a mount namespace', 'unshare', CLONE_NEWNS)
  mustCall('keep mounts to itself', 'mount', null, '/', null, MS_PRIVATE_FROM_HERE, null)
  mkdirSync(NAMES, { recursive: true })
  mustCall(`hide ${NAMES}`, 'mount', 'tmpfs', NAMES, 'tmpfs', 0, null)
}

/** A folder for the files of sandboxes, away from those of others. */
export function makeRoot(): string {
  return mkdtempSync(join(tmpdir(), 'kps-'))
}

export function removeRoot(root: string): void {
  rmSync(root, { recursive: true, force: true })
}

/** All that a sandbox could leave behind, as lines: nothing of it should be there after one has ended. */
export function leftovers(root: string): string[] {
  using links = new Rtnetlink()
  const routes = ([4, 6] as const)
    .flatMap((family) => links.routeDestinations(family).map(formatCidr))
    .filter((route) => !/^(127\.|::1\/|ff00:|fe80:)/.test(route))
  return [
    ...Object.keys(networkInterfaces()).filter((link) => link !== 'lo'),
    ...routes,
    ...listFolder(root).filter((name) => !name.startsWith('.')),
    ...listFolder(NAMES).filter((name) => leadsNowhere(join(NAMES, name))),
    ...processesOf(root),
  ]
}

/** The processes that were started for sandboxes of this root. */
export function processesOf(root: string): string[] {
  return listFolder('/proc')
    .filter((pid) => /^\d+$/.test(pid) && Number(pid) !== process.pid)
    .flatMap((pid) => {
      try {
        const isOurs = readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`KUBE_PROXY_SANDBOX_DIR=${root}\0`)
        const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1').replaceAll('\0', ' ')
        return isOurs && command !== '' ? [`process ${pid}: ${command}`] : []
      } catch {
        return []
      }
    })
}

function listFolder(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function leadsNowhere(path: string): boolean {
  try {
    const [, pid] = /^\/proc\/(\d+)\/fd\//.exec(readlinkSync(path)) ?? []
    return pid !== undefined && !listFolder('/proc').includes(pid)
  } catch {
    return false
  }
}
