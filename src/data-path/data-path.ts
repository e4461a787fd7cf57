// The threads and listeners that carry the connections. One proxy that takes over from another in this process, because
// its configuration changed, takes over these as well: no client is cut off.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { readFdLimit } from '../system/fd-limit.ts'
import type { Family } from '../lib/ip.ts'
import { parsePortRange, type PortRange } from './port-range.ts'
import { DataPlane } from './data-plane.ts'
import { Listeners } from './listeners.ts'
import { endOfFds } from './spare-sockets.ts'

export interface DataPathSettings {
  /** `first-last`; empty: any port. */
  readonly portRange: string
  readonly udpIdleTimeoutMs: number
  /** Absent: as many as this machine has work for. */
  readonly threads?: number
}

export interface DataPath {
  readonly plane: DataPlane
  readonly listeners: Readonly<Record<Family, Listeners>>
  /** The last user to release it closes the listeners; connections go on until they end. */
  release(): void
}

/** More threads than this rarely find work; each costs memory. */
const MOST_THREADS = 8
const IDLE_CHECK_MS = 1000

interface Shared {
  readonly key: string
  readonly carrier: Omit<DataPath, 'release'>
  users: number
}

let current: Shared | undefined

/** The data path in use, if it has the same settings, or a new one. Throws when the settings cannot be used. */
export function acquireDataPath(settings: DataPathSettings, warn: (message: string) => void): DataPath {
  const key = JSON.stringify(settings)
  const shared = current?.key === key && current.users > 0 ? current : createDataPath(settings, key, warn)
  current = shared
  shared.users++
  let isReleased = false
  return {
    ...shared.carrier,
    release() {
      if (!isReleased) shared.users--
      if (!isReleased && shared.users === 0) retire(shared.carrier)
      isReleased = true
    },
  }
}

function createDataPath(settings: DataPathSettings, key: string, warn: (message: string) => void): Shared {
  const range = parsePortRange(settings.portRange)
  const ephemeral = readEphemeralPorts()
  const reserved = readReservedPorts()
  const plane = new DataPlane({
    threads: settings.threads ?? Math.min(MOST_THREADS, availableParallelism()),
    udpIdleMs: settings.udpIdleTimeoutMs,
    ephemeral,
    reserved,
    onWarning: warn,
    onFailed: (error) => {
      throw new Error(`Cannot go on: a thread that carries connections failed: ${error.message}`, { cause: error })
    },
  })
  const endFd = () => endOfFds(readFdLimit())
  const total = { open: 0 }
  const listenersOf = (family: Family) => new Listeners({ family, plane, range, ephemeral, reserved, endFd, total })
  return { key, carrier: { plane, listeners: { 4: listenersOf(4), 6: listenersOf(6) } }, users: 0 }
}

function retire({ plane, listeners }: Shared['carrier']): void {
  listeners[4].releaseAll()
  listeners[6].releaseAll()
  const timer = setInterval(() => {
    if (!plane.isIdle) return
    clearInterval(timer)
    void plane.stop()
  }, IDLE_CHECK_MS)
  timer.unref()
}

/** The kernel chooses among these for a program that binds port 0. */
function readEphemeralPorts(): PortRange {
  const [first = 32_768, last = 60_999] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8')
    .trim()
    .split(/\s+/)
    .map(Number)
  return { first, last }
}

/** The ports that it never chooses: `8080,9148-9150`. */
function readReservedPorts(): ReadonlySet<number> {
  const text = readFileSync('/proc/sys/net/ipv4/ip_local_reserved_ports', 'utf8').trim()
  const ranges = text === '' ? [] : text.split(',')
  return new Set(
    ranges.flatMap((range) => {
      const [first = 0, last = first] = range.split('-').map(Number)
      return Array.from({ length: last - first + 1 }, (_, i) => first + i)
    }),
  )
}
