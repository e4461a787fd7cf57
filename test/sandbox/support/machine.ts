// The machine that a sandbox is started on: a network namespace of the test's own, with nothing in it but loopback.

import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { unshareNetwork } from '../../../src/system/netns.ts'
import { Rtnetlink } from '../../../src/links/rtnetlink.ts'
import { formatCidr } from '../../../src/lib/ip.ts'

let isEntered = false
/** Names that other sandboxes of this computer, which crashed before, have left. */
const leftByOthers = new Set(listFolder('/run/netns').filter((name) => leadsNowhere(join('/run/netns', name))))

/** Moves this process, and what it starts from now on, to the machine. Once per test file. */
export function enterMachine(): void {
  if (isEntered) return
  isEntered = true
  unshareNetwork()
  using links = new Rtnetlink()
  links.setUp('lo')
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
    ...listFolder('/run/netns').filter((name) => isOfTests(name) && leadsNowhere(join('/run/netns', name))),
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

/** Names of networks are seen on the whole machine. Those of tests begin with what a sandbox is called unless told. */
function isOfTests(name: string): boolean {
  return name.startsWith('sandbox') && !leftByOthers.has(name)
}

function leadsNowhere(path: string): boolean {
  try {
    const [, pid] = /^\/proc\/(\d+)\/fd\//.exec(readlinkSync(path)) ?? []
    return pid !== undefined && !listFolder('/proc').includes(pid)
  } catch {
    return false
  }
}
