// The modes as the fault suites see them: how to set up a node for one, what it has put into the kernel, how much of it.

import { readdirSync, readFileSync } from 'node:fs'
import { USERSPACE_TABLE } from '../../src/modes/userspace/plan/planner.ts'
import { TABLE as IPVS_TABLE, LINK as IPVS_LINK } from '../../src/modes/ipvs/plan/names.ts'
import { printProxyTables } from '../support/nft-tables.ts'
import type { ModeName } from '../conformance/modes.ts'
import type { Netns } from '../support/netns/netns.ts'

export interface FaultyMode {
  readonly label: string
  readonly mode: ModeName
  /** Further flags. */
  readonly args: readonly string[]
  /** Whether the kernel carries connections: then they outlive the process. */
  readonly carriedBy: 'kernel' | 'process'
  /** Whether it starts other programs. */
  readonly runsPrograms: boolean
  prepare(node: Netns): void
  /** All that the proxy has in the kernel, one line each, in an order that does not depend on history. */
  rules(node: Netns): string
}

/** A change is there at once, and health is known soon. */
const HASTY = ['-v=2']

export const nftables: FaultyMode = {
  label: 'nftables',
  mode: 'nftables',
  args: HASTY,
  carriedBy: 'kernel',
  runsPrograms: false,
  prepare() {},
  rules: (node) => printProxyTables(node),
}

export const iptablesNft: FaultyMode = iptables('nft')
export const iptablesLegacy: FaultyMode = iptables('legacy')

export const userspace: FaultyMode = {
  label: 'userspace',
  mode: 'userspace',
  args: HASTY,
  carriedBy: 'process',
  runsPrograms: false,
  prepare() {},
  // Which ports its listeners have is its own affair.
  rules: (node) =>
    printProxyTables(node, USERSPACE_TABLE)
      .split('\n')
      .map((line) => (/ listeners /.test(line) ? line.replace(/\d{5}/g, 'PORT') : line.replace(LISTENER, '"PORT"$1')))
      .sort()
      .join('\n'),
}

/** The port in an address to which rules lead. */
const LISTENER = /\b\d{5}(\]\}\]$)/

export const ipvs: FaultyMode = {
  label: 'ipvs',
  mode: 'ipvs',
  args: HASTY,
  carriedBy: 'kernel',
  runsPrograms: false,
  prepare() {},
  rules(node) {
    const servers = node.run('ipvsadm', ['-Sn']).split('\n').filter(Boolean)
    const addresses = node.run('ip', ['-o', 'address', 'show', 'dev', IPVS_LINK]).match(/inet6? \S+/g) ?? []
    // The kernel gives the link an address of its own.
    const ours = addresses.filter((address) => !address.includes('fe80:'))
    return [...servers.toSorted(), ...ours.toSorted(), printProxyTables(node, IPVS_TABLE)].join('\n')
  },
}

function iptables(backend: 'nft' | 'legacy'): FaultyMode {
  const programs = [`iptables-${backend}`, `ip6tables-${backend}`]
  return {
    label: `iptables-${backend}`,
    mode: 'iptables',
    args: HASTY,
    carriedBy: 'kernel',
    runsPrograms: true,
    prepare(node) {
      for (const name of programs) node.run(name, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
    },
    rules: (node) =>
      programs
        .flatMap((name) => savedRules(node, name))
        .toSorted()
        .join('\n'),
  }
}

const TABLES: readonly string[] = ['filter', 'nat', 'mangle']

function savedRules(node: Netns, program: string): string[] {
  return node
    .run(`${program}-save`, [])
    .split(/^\*/m)
    .flatMap((text) => {
      const [table = '', ...lines] = text.split('\n')
      if (!TABLES.includes(table)) return []
      return lines
        .filter((line) => /^[:-]/.test(line))
        .map((line) => `${program} ${table} ${line.replace(/ \[\d+:\d+\]$/, '')}`)
    })
}

/** How much there is of everything that could leak. */
export interface Footprint {
  readonly rssMb: number
  /** The most that it ever had. */
  readonly highestRssMb: number
  readonly fds: number
  readonly threads: number
  /** Lines of rules(). */
  readonly kernelObjects: number
  readonly nftObjects: number
  /** Entries of the connection tracker. */
  readonly flows: number
}

export function footprint(mode: FaultyMode, node: Netns, pid: number): Footprint {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  const number = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
  return {
    rssMb: number('VmRSS') / 1024,
    highestRssMb: number('VmHWM') / 1024,
    fds: countFds(pid),
    threads: number('Threads'),
    kernelObjects: mode.rules(node).split('\n').length,
    // Everything, also what no rule leads to any more.
    nftObjects: node.run('nft', ['--stateless', 'list', 'ruleset']).split('\n').length,
    flows: Number(node.enter(() => readFileSync('/proc/sys/net/netfilter/nf_conntrack_count', 'utf8'))),
  }
}

export function countFds(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length
}
