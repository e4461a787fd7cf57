// What the iptables mode has in the kernel, for explain: its tables with their counters, and the affinity entries.

import type { Bytes } from '../../lib/ip.ts'
import { readFileSync, readdirSync } from 'node:fs'
import { programName } from '../../iptables/programs.ts'
import { probeIptables } from '../../iptables/probe.ts'
import { jiffiesFrom, parseRecent } from '../../iptables/recent.ts'
import { parseSaved, type Recent, walkableTables } from '../../iptables/walkable.ts'
import type { Walkable } from '../../packet-walk/types.ts'
import { runProgram } from '../../system/run-program.ts'
import type { WalkableOptions } from '../contract.ts'
import { CHAINS } from './plan/names.ts'

const RECENT = '/proc/net/xt_recent'

export async function readIptables({ family, now }: WalkableOptions): Promise<Walkable | undefined> {
  const { programs } = await probeIptables([family])
  const name = programName(programs, family, '-save')
  const { code, stdout, stderr } = await runProgram(name, ['-c'])
  if (code !== 0) throw new Error(`Cannot read the rules: ${name} says ${stderr.trim() || code}`)
  const saved = parseSaved(stdout)
  if (saved.tables.get('nat')?.has(CHAINS.services) !== true) return undefined
  return walkableTables(saved, readRecent(now()), `tables of ${name.replace(/-save$/, '')}`)
}

/** Without them, no client counts as remembered. */
function readRecent(nowMs: number): Recent {
  const lists = new Map<string, ReadonlyMap<Bytes, number>>()
  try {
    const jiffies = jiffiesFrom(readFileSync('/proc/timer_list', 'latin1'), uptimeSeconds())
    if (jiffies === undefined) return lists
    for (const name of readdirSync(RECENT)) {
      const clients = parseRecent(readFileSync(`${RECENT}/${name}`, 'latin1'), jiffies)
      lists.set(name, new Map(Array.from(clients, ([client, agoMs]) => [client, nowMs - agoMs])))
    }
  } catch {
    // The kernel has no such lists, or does not show them.
  }
  return lists
}

function uptimeSeconds(): number {
  return Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0])
}
