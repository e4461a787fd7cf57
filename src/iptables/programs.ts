// Which iptables this machine has, and which of them to use.

import type { Family } from '../lib/ip.ts'
import type { Backend } from './script.ts'

export interface Version {
  readonly major: number
  readonly minor: number
  readonly patch: number
}

/** The programs of one backend. */
export interface IptablesPrograms {
  readonly backend: Backend
  readonly version: Version
  /** `iptables-nft`, `iptables-legacy`, or `iptables` where there is but one. */
  readonly name: string
}

/** Older ones lack much that we need. */
const OLDEST: Version = { major: 1, minor: 4, patch: 11 }
/** iptables-restore --wait and MASQUERADE --random-fully came with it. */
const WAITS_SINCE: Version = { major: 1, minor: 6, patch: 2 }
/** The first iptables-nft without bugs that concern us. */
const NFT_SOUND_SINCE: Version = { major: 1, minor: 8, patch: 4 }

/** Reads `iptables v1.8.9 (nf_tables)`; undefined when it is something else. */
export function parseVersion(printed: string): { version: Version; backend: Backend } | undefined {
  const match = /v(\d+)\.(\d+)\.(\d+)[^(]*(\(nf_tables\))?/.exec(printed)
  if (match === null) return undefined
  const [, major, minor, patch, nftables] = match
  const version = { major: Number(major), minor: Number(minor), patch: Number(patch) }
  return { version, backend: nftables === undefined ? 'legacy' : 'nft' }
}

export function formatVersion({ major, minor, patch }: Version): string {
  return `${major}.${minor}.${patch}`
}

/** Why it cannot be used; undefined when it can. */
export function versionProblem({ version, name }: IptablesPrograms): string | undefined {
  if (isAtLeast(version, OLDEST)) return undefined
  return `${name} is of version ${formatVersion(version)}, it takes at least ${formatVersion(OLDEST)}`
}

/** What a person should know about it. */
export function versionWarning({ version, backend, name }: IptablesPrograms): string | undefined {
  if (backend === 'legacy' || isAtLeast(version, NFT_SOUND_SINCE)) return undefined
  return `${name} ${formatVersion(version)} has bugs that lose rules: update it to ${formatVersion(NFT_SOUND_SINCE)} or newer`
}

/** Whether iptables-restore can wait for the lock. */
export function canWait({ version }: IptablesPrograms): boolean {
  return isAtLeast(version, WAITS_SINCE)
}

/** Whether MASQUERADE can choose ports fully at random. */
export function hasRandomFully({ version }: IptablesPrograms): boolean {
  return isAtLeast(version, WAITS_SINCE)
}

/** The name of a program: `ip6tables-nft-restore` of the programs called `iptables-nft`. */
export function programName({ name }: IptablesPrograms, family: Family, suffix: '' | '-save' | '-restore'): string {
  return `${family === 6 ? name.replace(/^iptables/, 'ip6tables') : name}${suffix}`
}

function isAtLeast(version: Version, other: Version): boolean {
  const difference = version.major - other.major || version.minor - other.minor || version.patch - other.patch
  return difference >= 0
}

/** Whether what iptables-save printed has a chain that kubelet leaves for others to see which iptables it uses. */
export function hasKubeletHint(saved: string): boolean {
  return /^:(KUBE-IPTABLES-HINT|KUBE-KUBELET-CANARY) /m.test(saved)
}

export function countRules(saved: string): number {
  return saved.match(/^-A /gm)?.length ?? 0
}

/** What can be read to see which backend the machine uses: what iptables-save prints for both families, family by family. */
export interface BackendEvidence {
  nftMangle(): Texts
  nft(): Texts
  legacy(): Texts
}

type Texts = Iterable<string> | AsyncIterable<string>

export interface BackendChoice {
  readonly backend: Backend
  readonly reason: string
}

/**
 * As the images of kube-proxy choose: rules of the two backends see packets one after the other, so ours must be where
 * those of other programs are. What is not needed is not read.
 */
export async function chooseBackend(evidence: BackendEvidence): Promise<BackendChoice> {
  for await (const saved of evidence.nftMangle()) {
    if (hasKubeletHint(saved)) return { backend: 'nft', reason: 'kubelet uses it' }
  }
  const legacy = await joined(evidence.legacy())
  if (hasKubeletHint(legacy)) return { backend: 'legacy', reason: 'kubelet uses it' }
  const [ofLegacy, ofNft] = [countRules(legacy), countRules(await joined(evidence.nft()))]
  if (ofLegacy > ofNft) return { backend: 'legacy', reason: `it has more rules: ${ofLegacy}, iptables-nft ${ofNft}` }
  if (ofNft > 0) return { backend: 'nft', reason: `it has rules: ${ofNft}, iptables-legacy ${ofLegacy}` }
  return { backend: 'nft', reason: 'neither has rules' }
}

async function joined(texts: Texts): Promise<string> {
  let all = ''
  for await (const text of texts) all += text
  return all
}
