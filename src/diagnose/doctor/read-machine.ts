// What the doctor reads of this machine: settings, counts, MTUs, what other programs' rules do, and whether endpoints answer.

import { connect } from 'node:net'
import type { Known } from '../explain/known.ts'
import { KernelError } from '../../lib/errors.ts'
import { type Family, joinHostPort, ipBytes } from '../../lib/ip.ts'
import { findPrograms } from '../../iptables/probe.ts'
import { programName } from '../../iptables/programs.ts'
import { listLinkSizes } from '../../links/addresses.ts'
import { findWays } from '../../links/find-ways.ts'
import { listTableNames, type TableName } from '../../nftables/list-tables.ts'
import { type ListedTable, parseListing } from '../../nftables/parse-json.ts'
import { runProgram } from '../../system/run-program.ts'
import { readNumber, readText } from '../read-text.ts'
import type { ForeignFacts, MachineFacts, TryFact } from './facts.ts'
import { findForeign, type ForeignPacket, isForeignName } from './foreign.ts'
import { findForeignIptables } from './foreign-iptables.ts'
import { ownerOf } from './owners.ts'
import { localPods } from './packets.ts'

/** The least that IPv6 asks of a link. Tunnels have a little less than 1500, and that is fine. */
const LEAST_MTU = 1280

export function readMachine(family: Family): MachineFacts {
  const forwarding = readNumber(
    family === 4 ? '/proc/sys/net/ipv4/ip_forward' : '/proc/sys/net/ipv6/conf/all/forwarding',
  )
  const count = readNumber('/proc/sys/net/netfilter/nf_conntrack_count')
  const max = readNumber('/proc/sys/net/netfilter/nf_conntrack_max')
  const links = listLinkSizes().filter(({ name, isUp }) => isUp && name !== 'lo')
  const rpFilterOfAll = readNumber('/proc/sys/net/ipv4/conf/all/rp_filter') ?? 0
  return {
    forwarding: forwarding === undefined ? undefined : forwarding !== 0,
    conntrack: count === undefined || max === undefined || max === 0 ? undefined : { count, max },
    smallMtus: links.filter(({ mtu }) => mtu < LEAST_MTU).map(({ name, mtu }) => ({ name, mtu })),
    strictRpFilter: links.map(({ name }) => name).filter((name) => strictness(name, rpFilterOfAll) === 1),
    rpFiltered: 0,
    podMtu: undefined,
  }
}

/** What cannot be looked at is a doubt, not an all-clear. */
export async function readForeign(family: Family, packets: readonly ForeignPacket[]): Promise<ForeignFacts> {
  const [byNft, byIptables] = await Promise.all([readForeignTables(family, packets), readForeignRules(family, packets)])
  return {
    // What iptables-nft has is read in its own words.
    found: [...byIptables.found, ...byNft.found.filter(({ table }) => !byIptables.tables.has(table))],
    doubts: [...byNft.doubts, ...byIptables.doubts].filter((each) => !isAbout(each, byIptables.tables)),
    policyEngines: [...new Set([...byNft.policyEngines, ...byIptables.policyEngines])],
  }
}

function isAbout(doubt: string, tables: ReadonlySet<string>): boolean {
  return [...tables].some((table) => doubt.startsWith(`table ${table},`))
}

async function readForeignTables(family: Family, packets: readonly ForeignPacket[]): Promise<ForeignFacts> {
  const nft = family === 4 ? 'ip' : 'ip6'
  const names = listForeignNames()
  const isNear = names.filter((each) => [nft, 'inet', 'netdev', 'bridge'].includes(each.family))
  if (isNear.length === 0) return NOTHING_FOREIGN
  const listed = (await listTables('ruleset')) ?? (await listOneByOne(isNear))
  const tables = listed.filter(({ table }) => table.family === nft)
  const unread = isNear.filter(({ family: of, name }) => {
    return !listed.some(({ listed: asListed, table }) => asListed === of && table.name === name)
  })
  const { found, doubts } = findForeign(tables, packets)
  return {
    found,
    doubts: [
      ...doubts,
      ...unread.map(({ family: of, name }) => `table ${of} ${name}, of another program, cannot be followed here`),
    ],
    policyEngines: enginesOf(
      tables.flatMap(({ table }) => [...table.chains.keys()].map((chain) => [table.name, chain])),
    ),
  }
}

const NOTHING_FOREIGN: ForeignFacts = { found: [], doubts: [], policyEngines: [] }

/** A kernel without nftables has none. */
function listForeignNames(): TableName[] {
  try {
    return listTableNames().filter(({ name }) => isForeignName(name))
  } catch (error) {
    if (error instanceof KernelError) return []
    throw error
  }
}

function enginesOf(places: readonly (readonly [string, string] | readonly string[])[]): string[] {
  return places.flatMap(([table = '', chain = '']) => {
    const owner = ownerOf(table, chain)
    return owner?.kind === 'network policy' ? [owner.name] : []
  })
}

/** Undefined where nft prints what is no JSON: 1.0.6 does, with success, for a table that belongs to a process. */
async function listTables(...what: readonly string[]): Promise<ListedTable[] | undefined> {
  try {
    const { code, stdout } = await runProgram('nft', ['-j', 'list', ...what])
    return code === 0 ? parseListing(stdout) : []
  } catch {
    return undefined
  }
}

/** Those that can be read. */
async function listOneByOne(names: readonly TableName[]): Promise<ListedTable[]> {
  const listed = await Promise.all(names.map(({ family, name }) => listTables('table', family, name)))
  return listed.flatMap((tables) => tables ?? [])
}

/** `tables`: what iptables-nft has listed, as nft calls it. */
interface IptablesRules extends ForeignFacts {
  readonly tables: ReadonlySet<string>
}

async function readForeignRules(family: Family, packets: readonly ForeignPacket[]): Promise<IptablesRules> {
  const nft = family === 4 ? 'ip' : 'ip6'
  const tables = new Set<string>()
  const texts: string[] = []
  const translated = packets.filter(({ isUntranslated }) => !isUntranslated)
  const found = (await findPrograms()).map(async (programs) => {
    // Without -t: naming a table would make the kernel create it.
    const { code, stdout } = await runProgram(programName(programs, family, '-save'), [])
    if (code !== 0) return []
    texts.push(stdout)
    const name = programName(programs, family, '')
    // Where a table of that name is nobody's but nft's, iptables-nft says so and lists nothing.
    if (!name.includes('legacy')) for (const [, table] of stdout.matchAll(/^\*(\w+)$/gm)) tables.add(`${nft} ${table}`)
    return findForeignIptables(stdout, name, translated)
  })
  const chains = (text: string) => Array.from(text.matchAll(/^:(\S+) /gm), ([, chain = '']) => ['', chain])
  return {
    found: (await Promise.all(found)).flat(),
    doubts: [],
    policyEngines: [...new Set(enginesOf(texts.flatMap(chains)))],
    tables,
  }
}

const MOST_PODS = 100

/** The largest of the links that lead to pods of this node. */
export function readPodMtu(known: Known, family: Family): MachineFacts['podMtu'] {
  const pods = localPods(known, family).slice(0, MOST_PODS)
  const links = findWays(pods.map((address) => ipBytes(address))).flatMap((way) =>
    way.kind === 'link' ? [{ link: way.link, mtu: way.mtu }] : [],
  )
  return links.sort((a, b) => b.mtu - a.mtu)[0]
}

/** How many packets rp_filter has dropped so far, on all interfaces. */
export function readRpFiltered(): number {
  const [names = [], values = []] = readText('/proc/net/netstat')
    .split('\n')
    .filter((line) => line.startsWith('TcpExt:'))
    .map((line) => line.split(' '))
  return Number(values[names.indexOf('IPReversePathFilter')] ?? 0)
}

const PATIENCE_MS = 1500

/** Opens a connection and closes it at once. */
export function tryConnection(address: string, port: number, pod: string): Promise<TryFact> {
  const to = joinHostPort(address, port)
  return new Promise((resolve) => {
    const socket = connect({ host: address, port })
    const finish = (result: TryFact['result'], error = '') => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ to, pod, result, error })
    }
    const timer = setTimeout(() => finish('no answer', `no answer within ${PATIENCE_MS} ms`), PATIENCE_MS)
    socket.once('connect', () => finish('connected'))
    socket.once('error', (error: NodeJS.ErrnoException) => finish(resultOf(error.code), error.code ?? error.message))
  })
}

/** EINVAL: the route is a blackhole; EACCES: it says prohibit. */
const NO_ROUTE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EINVAL', 'EACCES'])

function resultOf(code: string | undefined): TryFact['result'] {
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET') return 'refused'
  return NO_ROUTE.has(code ?? '') ? 'no route' : 'no answer'
}

/** The larger of the two counts: 0 off, 1 strict, 2 loose. */
function strictness(link: string, ofAll: number): number {
  return Math.max(ofAll, readNumber(`/proc/sys/net/ipv4/conf/${link}/rp_filter`) ?? 0)
}
