// What the doctor reads of this machine: settings, counts, MTUs, what other programs' rules do, and whether endpoints answer.

import { connect } from 'node:net'
import { readFileSync } from 'node:fs'
import { type Family, joinHostPort, parseIp } from '../lib/ip.ts'
import { listLinkSizes } from '../links/addresses.ts'
import { findPrograms } from '../iptables/probe.ts'
import { programName } from '../iptables/programs.ts'
import { type ListedTable, parseListing } from '../nftables/parse-json.ts'
import { runProgram } from '../system/run-program.ts'
import { findForeign, type ForeignPacket } from './foreign.ts'
import { findForeignIptables } from './foreign-iptables.ts'
import type { ForeignFact, MachineFacts, TryFact } from './facts.ts'

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
  }
}

/** Without the programs there is nothing to go by, and nothing is found. */
export async function readForeign(family: Family, packets: readonly ForeignPacket[]): Promise<ForeignFact[]> {
  const [byNft, byIptables] = await Promise.all([readForeignTables(family, packets), readForeignRules(family, packets)])
  return [...byNft, ...byIptables]
}

async function readForeignTables(family: Family, packets: readonly ForeignPacket[]): Promise<ForeignFact[]> {
  const tables = (await listTables('ruleset')) ?? (await listOneByOne())
  return findForeign(
    tables.filter(({ table }) => table.family === (family === 4 ? 'ip' : 'ip6')),
    packets,
  )
}

/** Undefined where nft prints what is no JSON: 1.0.6 does, with success, for a table that belongs to a process. */
async function listTables(...what: readonly string[]): Promise<ListedTable[] | undefined> {
  const { code, stdout } = await runProgram('nft', ['-j', 'list', ...what])
  if (code !== 0) return []
  try {
    return parseListing(stdout)
  } catch {
    return undefined
  }
}

/** Those that can be read. */
async function listOneByOne(): Promise<ListedTable[]> {
  const { stdout } = await runProgram('nft', ['list', 'tables'])
  const names = [...stdout.matchAll(/^table (\S+) (\S+)/gm)]
  const listed = await Promise.all(names.map(([, family = '', name = '']) => listTables('table', family, name)))
  return listed.flatMap((tables) => tables ?? [])
}

async function readForeignRules(family: Family, packets: readonly ForeignPacket[]): Promise<ForeignFact[]> {
  const found = (await findPrograms()).map(async (programs) => {
    // Without -t: naming a table would make the kernel create it.
    const { code, stdout } = await runProgram(programName(programs, family, '-save'), [])
    return code === 0 ? findForeignIptables(stdout, programName(programs, family, ''), packets) : []
  })
  return (await Promise.all(found)).flat()
}

/** How many packets rp_filter has dropped so far, on all interfaces. */
export function readRpFiltered(): number {
  const [names = [], values = []] = readLines('/proc/net/netstat')
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

function resultOf(code: string | undefined): TryFact['result'] {
  if (code === 'ECONNREFUSED' || code === 'ECONNRESET') return 'refused'
  return code === 'ENETUNREACH' || code === 'EHOSTUNREACH' ? 'no route' : 'no answer'
}

export function packetTo(
  address: string,
  port: number,
  from: { source: string; inputInterface: string | undefined },
): ForeignPacket {
  return {
    words: `a packet from ${from.inputInterface === undefined ? 'this node' : from.source} to ${joinHostPort(address, port)}`,
    packet: {
      inputInterface: from.inputInterface,
      source: parseIp(from.source)!,
      destination: parseIp(address)!,
      destinationPort: port,
      sourcePort: 40_000,
      protocol: 'TCP',
    },
  }
}

/** The larger of the two counts: 0 off, 1 strict, 2 loose. */
function strictness(link: string, ofAll: number): number {
  return Math.max(ofAll, readNumber(`/proc/sys/net/ipv4/conf/${link}/rp_filter`) ?? 0)
}

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'latin1').split('\n')
  } catch {
    return []
  }
}

function readNumber(path: string): number | undefined {
  try {
    const value = Number(readFileSync(path, 'latin1').trim())
    return Number.isFinite(value) ? value : undefined
  } catch {
    return undefined
  }
}
