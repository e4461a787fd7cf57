// Finds the cgroup whose processes choose endpoints.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Stands for the cgroup that the kubelet makes for all pods. */
const PODS = 'pods'
/** Stand for that of every process of the machine: for those on the node's own network, and for all of them. */
const NODE = 'node'
const ALL = 'all'

/** Whether sockets of pods choose, or only those on the node's own network. */
export function hasPods(scope: string): boolean {
  return scope !== NODE
}

/** Names that the kubelet gives it below the root: with and without systemd, and in a node that is a container (kind). */
const POD_GROUPS = [
  'kubepods.slice',
  'kubepods',
  'kubelet.slice/kubelet-kubepods.slice',
  'kubelet.slice/kubelet.service/kubepods.slice',
  'kubelet/kubepods',
]

/** The folder of the configured cgroup. Throws when there is none. */
export function findCgroup(wanted: string): string {
  if (wanted === PODS) return findPodGroup(readCgroupRoots())
  if (wanted === ALL || wanted === NODE) return findRoot(readCgroupRoots())
  if (!existsSync(join(wanted, 'cgroup.procs'))) throw new Error(`There is no cgroup ${wanted}`)
  return wanted
}

function findPodGroup(roots: readonly string[]): string {
  const groups = roots.flatMap((root) => POD_GROUPS.map((group) => join(root, group)))
  const found = groups.find((group) => existsSync(group))
  if (found !== undefined) return found
  const where = roots.length === 0 ? 'no cgroup file system (version 2) is mounted' : `none of ${groups.join(', ')}`
  throw new Error(`There is no cgroup of pods here: ${where}`)
}

/**
 * A container sees its own cgroup as a root, beside the machine's. That of the machine has no `cgroup.events`; in a node that is a container
 * (kind), it is the one with pods.
 */
function findRoot(roots: readonly string[]): string {
  const found =
    roots.find((root) => !existsSync(join(root, 'cgroup.events'))) ??
    roots.find((root) => POD_GROUPS.some((group) => existsSync(join(root, group))))
  if (found === undefined)
    throw new Error(
      'There is no cgroup of all processes here: no cgroup file system (version 2) of the machine is mounted',
    )
  return found
}

/** Where cgroups of version 2 are mounted. */
export function readCgroupRoots(): string[] {
  return readFileSync('/proc/self/mounts', 'latin1')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(([, , type]) => type === 'cgroup2')
    .map(([, folder]) => folder!.replaceAll('\\040', ' '))
}
