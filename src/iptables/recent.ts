// The lists of the `recent` match, from /proc/net/xt_recent and /proc/net/ipt_recent's successor for IPv6: which clients they
// hold, and when each was noted last.

import type { Bytes } from '../lib/ip.ts'
import { parseIp } from '../lib/ip.ts'

export interface Jiffies {
  /** The kernel's clock now. */
  readonly now: number
  readonly perSecond: number
}

/** `src=10.0.0.1 ttl: 64 last_seen: 4295123456 oldest_pkt: 1 4295123456`: how many milliseconds ago, by client. */
export function parseRecent(text: string, jiffies: Jiffies): ReadonlyMap<Bytes, number> {
  const clients = new Map<Bytes, number>()
  for (const [, address = '', seen = ''] of text.matchAll(/^src=(\S+) ttl: \d+ last_seen: (\d+)/gm)) {
    const bytes = parseIp(address)
    if (bytes !== undefined) clients.set(bytes, (1000 * (jiffies.now - Number(seen))) / jiffies.perSecond)
  }
  return clients
}

/** The kernel counts from five minutes before 2^32 on, so the rate follows from its clock and from how long it runs. */
export function jiffiesFrom(timerList: string, uptimeSeconds: number): Jiffies | undefined {
  const [, text] = /^jiffies: (\d+)$/m.exec(timerList) ?? []
  if (text === undefined) return undefined
  const now = Number(text)
  const rates = [100, 250, 300, 1000]
  const off = (rate: number) => Math.abs(now - (2 ** 32 - 300 * rate) - uptimeSeconds * rate) / rate
  const [perSecond] = rates.sort((a, b) => off(a) - off(b))
  return { now, perSecond: perSecond! }
}
