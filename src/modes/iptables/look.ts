// What the iptables mode finds on this machine when it only looks: no program is run that would make the kernel create a table.

import { readFileSync } from 'node:fs'
import { type ChosenPrograms, choosePrograms, describePrograms, findPrograms, savedText } from '../../iptables/probe.ts'
import { type IptablesPrograms, versionProblem, versionWarning } from '../../iptables/programs.ts'
import { UnsupportedError } from '../../lib/errors.ts'
import type { Family } from '../../lib/ip.ts'
import { type NftablesState, probeNftables } from '../../nftables/probe.ts'
import { readCapabilities } from '../../system/capabilities.ts'
import { readModuleState } from '../../system/kernel-modules.ts'
import type { Advice, LookOptions, ModeOutlook } from '../contract.ts'
import { bridgeWarning } from './host-setup.ts'
import { CHAINS, isServiceChain } from './plan/names.ts'

const INSTALL = 'install iptables 1.8.4 or newer (package iptables)'

export async function lookForIptables({ families }: LookOptions): Promise<ModeOutlook> {
  const nftables = probeNftables()
  const ask = nftables === 'works' ? 'ask' : 'leave'
  const bridges = families.flatMap(adviseOnBridges)
  let chosen: ChosenPrograms
  try {
    chosen = await choosePrograms(ask)
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error
    return { lacks: [{ what: error.requires, todo: INSTALL }], warnings: bridges, uses: [] }
  }
  const { programs, reason } = chosen
  const tooOld = versionProblem(programs)
  const buggy = versionWarning(programs)
  return {
    lacks: [...(tooOld === undefined ? [] : [{ what: tooOld, todo: INSTALL }]), ...lacksOf(programs, nftables)],
    warnings: [...(buggy === undefined ? [] : [{ what: buggy, todo: INSTALL }]), ...bridges],
    uses: [`${describePrograms(programs)}, because ${reason}`],
  }
}

/** What the kernel, and this process's rights, lack for these programs. */
function lacksOf({ backend, name }: IptablesPrograms, nftables: NftablesState): Advice[] {
  const capabilities = readCapabilities()
  if (!capabilities.has('CAP_NET_ADMIN')) return [NO_RIGHTS]
  if (backend === 'nft') {
    if (nftables === 'missing') return [lackOf('nf_tables', name)]
    return readModuleState('nft_compat') === 'missing' ? [lackOf('nft_compat', name)] : []
  }
  const missing = ['ip_tables', 'iptable_nat', 'iptable_filter'].filter(
    (module) => readModuleState(module) === 'missing',
  )
  const rights = capabilities.has('CAP_NET_RAW') ? [] : [NO_RAW_SOCKETS]
  return [...missing.map((module) => lackOf(module, name)), ...rights]
}

const NO_RIGHTS: Advice = {
  what: 'iptables needs CAP_NET_ADMIN',
  todo: 'run it as root, or with CAP_NET_ADMIN',
}

const NO_RAW_SOCKETS: Advice = {
  what: 'iptables-legacy needs CAP_NET_RAW beside CAP_NET_ADMIN',
  todo: 'run it as root, or grant both; iptables-nft needs only CAP_NET_ADMIN',
}

function lackOf(module: string, program: string): Advice {
  return {
    what: `the kernel module ${module}, which ${program} needs, is missing`,
    todo: 'install it, or choose the nftables mode, which needs no programs',
  }
}

/** Chains of kube-proxy's names, of every iptables of this machine. Ours are the same to the letter. */
export async function readPresentChains(): Promise<string[]> {
  const hasNftables = probeNftables() === 'works'
  const present: string[] = []
  for (const programs of await findPrograms()) {
    if (programs.backend === 'nft' && !hasNftables) continue
    let families = 0
    let chains = 0
    for await (const saved of savedText(programs)) {
      const names = Array.from(saved.matchAll(/^:(\S+) /gm), ([, name]) => name!)
      if (names.includes(CHAINS.services)) families++
      chains += names.filter(isServiceChain).length
    }
    if (families > 0)
      present.push(`${describePrograms(programs)}: ${CHAINS.services}, and ${chains} chains of services`)
  }
  return present
}

function adviseOnBridges(family: Family): Advice[] {
  const what = bridgeWarning({ read: (path) => readFileSync(path, 'utf8'), write: () => {} }, family)
  if (what === undefined) return []
  const setting = `net.bridge.bridge-nf-call-ip${family === 6 ? '6' : ''}tables=1`
  return [{ what, todo: `where pods are attached to a bridge: modprobe br_netfilter, then sysctl -w ${setting}` }]
}
