// Rules that another machine has listed: `nft -j list ruleset`, `iptables-save`. Those of kube-proxy are understood, too.

import { parseSaved, walkableTables } from '../../iptables/walkable.ts'
import { type Family, formatIp } from '../../lib/ip.ts'
import type { Walkable } from '../../packet-walk/types.ts'
import type { NodeView } from '../../model/types.ts'
import { type ListedTable, parseListing } from '../../nftables/parse-json.ts'
import { walkableTable } from '../../nftables/walkable.ts'
import type { KernelState } from './explain.ts'
import type { Known } from './known.ts'

export interface Dump {
  readonly state: KernelState
  readonly mode: 'nftables' | 'iptables' | 'userspace'
  readonly name: string
  /** Addresses of the machine that the rules name. */
  readonly addresses: readonly string[]
}

/** Throws when it is neither. */
export function parseDump(text: string, name: string): Dump {
  if (text.trimStart().startsWith('{')) return parseNft(text, name)
  if (/^\*(nat|filter|mangle|raw)$/m.test(text)) return parseIptables(text, name)
  throw new Error(
    `Cannot read ${name}: must be what \`nft -j list ruleset\` or \`iptables-save\` prints${/^table /m.test(text) ? ' (nft needs -j)' : ''}`,
  )
}

/** The tables that proxies make, the likeliest first. */
const TABLES = ['kube-proxy', 'kube-proxy-userspace'] as const

function parseNft(text: string, name: string): Dump {
  const tables = parseListing(text)
  const found = TABLES.find((table) => tables.some((each) => each.table.name === table))
  if (found === undefined) {
    const others = tables.map(({ table }) => `${table.family} ${table.name}`).join(', ') || 'none'
    throw new Error(`Cannot explain by ${name}: it has no table kube-proxy of family ip or ip6, but ${others}`)
  }
  const ours = tables.filter(({ table }) => table.name === found)
  const of = (family: 'ip' | 'ip6') => ours.find(({ table }) => table.family === family)
  const walkables = { 4: walkableOf(of('ip')), 6: walkableOf(of('ip6')) }
  const walkable: Walkable = {
    what: ours.map(({ table }) => `table ${table.family} ${table.name}`).join(' and '),
    ...(found === 'kube-proxy-userspace' ? { endsAt: 'the proxy' } : {}),
    walk(packet, around) {
      const family: Family = packet.source.length === 4 ? 4 : 6
      const ofFamily = walkables[family]
      if (ofFamily === undefined) throw new Error(`the dump has no table of IPv${family}`)
      return ofFamily.walk(packet, around)
    },
  }
  return {
    state: { kind: 'walkable', walkable, when: `from ${name}`, nowMs: 0 },
    mode: found === 'kube-proxy' ? 'nftables' : 'userspace',
    name,
    addresses: ours.flatMap(addressesIn),
  }
}

function walkableOf(listed: ListedTable | undefined): Walkable | undefined {
  return listed && walkableTable(listed.table, listed.dynamicElements)
}

/** Node ports are open on addresses of the machine. */
function addressesIn({ table }: ListedTable): string[] {
  const elements = table.elements.get('nodeport-ips')
  return Array.from(elements?.values() ?? [], ({ key }) => formatIp(key))
}

function parseIptables(text: string, name: string): Dump {
  const saved = parseSaved(text)
  if (saved.tables.get('nat')?.has('KUBE-SERVICES') !== true) {
    throw new Error(`Cannot explain by ${name}: its table nat has no chain KUBE-SERVICES`)
  }
  const walkable = walkableTables(saved, new Map(), 'tables of iptables')
  return {
    state: { kind: 'walkable', walkable, when: `from ${name}`, nowMs: 0 },
    mode: 'iptables',
    name,
    addresses: [],
  }
}

/** Only the rules are known, so only their effect can be explained. */
export function knownFromDump(
  { mode, name, addresses }: Dump,
  given: readonly string[],
  modeNamed: (name: string) => Known['mode'],
): Known {
  const machineAddresses = [...new Set([...given, ...addresses])]
  const view = (family: Family): NodeView => ({
    family,
    nodeName: '(dump)',
    nodeIp:
      machineAddresses.find((each) => each.includes(':') === (family === 6)) ?? (family === 4 ? '127.0.0.1' : '::1'),
    zone: undefined,
    localDetector: { kind: 'none' },
    masqueradeAll: false,
    masqueradeMark: 0x4000,
    nodePortAddresses: { kind: 'all' },
    serviceCidrs: [],
  })
  return {
    source: `the dump ${name} alone`,
    hasObjects: false,
    mode: modeNamed(mode),
    nodes: { 4: view(4), 6: view(6) },
    machineAddresses,
    services: [],
    slices: [],
    allowExternalIPs: true,
    localhostNodePorts: true,
    connectRetry: false,
    ejected: new Map(),
    otherNodes: [],
    pods: [],
  }
}
