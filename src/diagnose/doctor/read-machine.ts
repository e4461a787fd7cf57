// What the doctor reads of this machine: settings, counts, MTUs, what other programs' rules do, and whether endpoints answer.

import { Socket } from 'node:net'
import type { Known } from '../explain/known.ts'
import { KernelError } from '../../lib/errors.ts'
import { type Bytes, type Family, formatIp, joinHostPort, ipBytes } from '../../lib/ip.ts'
import { findPrograms } from '../../iptables/probe.ts'
import { programName } from '../../iptables/programs.ts'
import { listLinkSizes } from '../../links/addresses.ts'
import { findWays } from '../../links/find-ways.ts'
import { listTableNames, type TableName } from '../../nftables/list-tables.ts'
import { runProgram } from '../../system/run-program.ts'
import { readNumber, readText } from '../read-text.ts'
import type { ForeignFacts, ForwardingOff, MachineFacts, TryFact } from './facts.ts'
import { doubtOf, factOf, findForeign, isForeignName } from './foreign.ts'
import { parseForeignIptables } from './foreign-iptables.ts'
import { type ListedTable, parseForeignTables } from './foreign-nft.ts'
import type { ForeignEnd, ForeignPacket, ForeignTable, LinkTo } from './foreign-rules.ts'
import { ownerOf } from './owners.ts'
import { localPods } from './packets.ts'

/** The least that IPv6 asks of a link. Tunnels have a little less than 1500, and that is fine. */
const LEAST_MTU = 1280

export function readMachine(families: readonly Family[]): MachineFacts {
  const count = readNumber('/proc/sys/net/netfilter/nf_conntrack_count')
  const max = readNumber('/proc/sys/net/netfilter/nf_conntrack_max')
  const links = listLinkSizes().filter(({ name, isUp }) => isUp && name !== 'lo')
  const rpFilterOfAll = readNumber('/proc/sys/net/ipv4/conf/all/rp_filter') ?? 0
  return {
    forwardingOff: readForwardingOff(families, []),
    conntrack: count === undefined || max === undefined || max === 0 ? undefined : { count, max },
    smallMtus: links.filter(({ mtu }) => mtu < LEAST_MTU).map(({ name, mtu }) => ({ name, mtu })),
    strictRpFilter: links.map(({ name }) => name).filter((name) => strictness(name, rpFilterOfAll) === 1),
    rpFiltered: 0,
    podMtu: undefined,
  }
}

/** `links`: those by which packets to be forwarded come in. IPv4 asks each of them; IPv6 has one setting for all. */
export function readForwardingOff(
  families: readonly Family[],
  links: readonly string[],
): MachineFacts['forwardingOff'] {
  const settings = families.flatMap((family): ForwardingOff[] =>
    family === 6
      ? [{ setting: 'net.ipv6.conf.all.forwarding' }]
      : [
          { setting: 'net.ipv4.ip_forward' },
          // A dot in a name is a slash for sysctl.
          ...links.map((link) => ({ setting: `net.ipv4.conf.${link.replaceAll('.', '/')}.forwarding`, link })),
        ],
  )
  const values = settings.map(({ setting }) => readNumber(`/proc/sys/${setting.replace(/[./]/g, swapped)}`))
  if (families.length > 0 && values.every((value) => value === undefined)) return undefined
  return settings.filter((_, i) => values[i] === 0)
}

const swapped = (mark: string) => (mark === '.' ? '/' : '.')

/** `packets` and `tries` are of one IP family. What cannot be looked at is a doubt, not an all-clear. */
export async function readForeign(
  family: Family,
  { packets, tries = [] }: { readonly packets: readonly ForeignPacket[]; readonly tries?: readonly ForeignPacket[] },
  { machineAddresses, mode }: Pick<Known, 'machineAddresses' | 'mode'>,
): Promise<ForeignFacts> {
  const [byNft, byIptables] = await Promise.all([readForeignTables(family), readForeignRules(family)])
  // What iptables-nft has is read in its own words.
  const tables = [
    ...byIptables.tables.map((table) => ({ ...table, hasNoProxy: WITHOUT_IPTABLES.has(mode.name) })),
    ...byNft.tables.filter((table) => !hasAll(byIptables.listed.get(table.name), table)),
  ]
  const own = new Set(machineAddresses)
  const here = { isLocalAddress: (address: Bytes) => own.has(formatIp(address)), linkTo: rememberLinks() }
  const { found, doubts } = findForeign(tables, packets, here)
  const ends = [...found, ...doubts]
  const ofTries = findForeign(tables, tries, here)
  const walls = [...ofTries.found, ...ofTries.doubts].filter(
    (wall) =>
      !ends.some(
        (end) =>
          end.packet.isOfThisNode &&
          end.table === wall.table &&
          end.handle === wall.handle &&
          end.rule === wall.rule &&
          end.chain === wall.chain,
      ),
  )
  const toDoubts = (of: readonly ForeignEnd[]) =>
    Promise.all(of.slice(0, MOST_FOUND).map(async (end) => doubtOf(end, await ruleText(end))))
  const unread = byNft.unread.filter((name) => !byIptables.listed.has(name))
  return {
    found: await Promise.all(found.slice(0, MOST_FOUND).map(async (end) => factOf(end, await ruleText(end)))),
    walls: await toDoubts(walls),
    doubts: [
      ...(await toDoubts(doubts)),
      ...unread.map((name) => ({
        what: `table ${name}, of another program, cannot be read here`,
        next: `nft -a list table ${name}`,
        isOfThisNode: true,
      })),
    ],
    policyEngines: [
      ...new Set(tables.flatMap((table) => [...table.chains.keys()].flatMap((chain) => engineOf(table, chain)))),
    ],
  }
}

/** Modes in which a proxy has no rules of iptables. */
const WITHOUT_IPTABLES: ReadonlySet<string> = new Set(['nftables', 'userspace'])

/** Each address is looked up once, when it is asked for. */
function rememberLinks(): LinkTo {
  const links = new Map<Bytes, string | undefined>()
  return (address) => {
    if (!links.has(address)) {
      const [way] = findWays([address])
      links.set(address, way?.kind === 'link' ? way.link : undefined)
    }
    return links.get(address)
  }
}

/** Rules that iptables cannot read are not in its listing. */
function hasAll(listed: ForeignTable | undefined, { chains }: ForeignTable): boolean {
  if (listed === undefined) return false
  return [...chains.values()].every(({ name, rules }) => (listed.chains.get(name)?.rules.length ?? 0) === rules.length)
}

/** Each takes a run of nft, for the rule as nft prints it. */
const MOST_FOUND = 3

function engineOf({ name }: ForeignTable, chain: string): string[] {
  const owner = ownerOf(name, chain)
  return owner?.kind === 'network policy' ? [owner.name] : []
}

/** As nft prints it. What iptables has printed is there already. */
async function ruleText({ table, chain, rule, handle }: ForeignEnd): Promise<string> {
  if (handle === undefined) return rule
  const { code, stdout } = await runProgram('nft', table.show(chain).split(' ').slice(1))
  const line = code === 0 ? stdout.split('\n').find((each) => each.endsWith(` # handle ${handle}`)) : undefined
  return line === undefined ? rule : line.replace(/ # handle \d+$/, '').trim()
}

interface NftTables {
  readonly tables: readonly ForeignTable[]
  /** Those that could not be listed. */
  readonly unread: readonly string[]
}

async function readForeignTables(family: Family): Promise<NftTables> {
  const families = [family === 4 ? 'ip' : 'ip6', 'inet', 'netdev', 'bridge']
  const names = listForeignNames().filter((each) => families.includes(each.family))
  if (names.length === 0) return { tables: [], unread: [] }
  const listed = (await listTables('ruleset')) ?? (await listOneByOne(names))
  const tables = listed.filter((each) => families.includes(each.family) && isForeignName(each.plainName))
  const unread = names
    .map((each) => `${each.family} ${each.name}`)
    // One that is switched off is not listed.
    .filter((name) => !listed.some((each) => each.name === name))
  return { tables: tables.filter(({ isDormant }) => !isDormant), unread }
}

/** A kernel without nftables has none. */
function listForeignNames(): TableName[] {
  try {
    return listTableNames().filter(({ name }) => isForeignName(name))
  } catch (error) {
    if (error instanceof KernelError) return []
    throw error
  }
}

/** Undefined where nft prints what is no JSON: 1.0.6 does, with success, for a table that belongs to a process. */
async function listTables(...what: readonly string[]): Promise<ListedTable[] | undefined> {
  try {
    const { code, stdout } = await runProgram('nft', ['-j', 'list', ...what])
    return code === 0 ? parseForeignTables(stdout) : []
  } catch {
    return undefined
  }
}

/** Those that can be read. */
async function listOneByOne(names: readonly TableName[]): Promise<ListedTable[]> {
  const listed = await Promise.all(names.map(({ family, name }) => listTables('table', family, name)))
  return listed.flatMap((tables) => tables ?? [])
}

interface IptablesTables {
  readonly tables: readonly ForeignTable[]
  /** What iptables-nft has listed, as nft calls it. */
  readonly listed: ReadonlyMap<string, ForeignTable>
}

async function readForeignRules(family: Family): Promise<IptablesTables> {
  const nft = family === 4 ? 'ip' : 'ip6'
  const listed = new Map<string, ForeignTable>()
  const found = (await findPrograms()).map(async (programs) => {
    // Without -t: naming a table would make the kernel create it.
    const { code, stdout } = await runProgram(programName(programs, family, '-save'), [])
    if (code !== 0) return []
    const name = programName(programs, family, '')
    const tables = parseForeignIptables(stdout, name)
    if (!name.includes('legacy')) for (const table of tables) listed.set(`${nft} ${table.name.split(' ')[0]}`, table)
    return tables
  })
  return { tables: (await Promise.all(found)).flat(), listed }
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

/** Opens a connection and closes it at once. `fd`: a socket elsewhere, in the network of a pod. */
export function tryConnection(address: string, port: number, pod: string, fd?: number): Promise<TryFact> {
  const to = joinHostPort(address, port)
  return new Promise((resolve) => {
    const socket = new Socket(fd === undefined ? {} : { fd }).connect({ host: address, port })
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
const UNREACHABLE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EINVAL', 'EACCES'])

function resultOf(code: string | undefined): TryFact['result'] {
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET') return 'refused'
  if (UNREACHABLE.has(code ?? '')) return 'unreachable'
  return code === undefined || code === 'ETIMEDOUT' ? 'no answer' : 'not possible'
}

/** The larger of the two counts: 0 off, 1 strict, 2 loose. */
function strictness(link: string, ofAll: number): number {
  return Math.max(ofAll, readNumber(`/proc/sys/net/ipv4/conf/${link}/rp_filter`) ?? 0)
}
