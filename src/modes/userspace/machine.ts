// The userspace mode on this machine: what carries the connections, the rules that lead there, and how it all ends.

import { setTimeout as sleep } from 'node:timers/promises'
import { listAddresses } from '../../links/addresses.ts'
import { raiseFdLimit, readFdLimit } from '../../system/fd-limit.ts'
import { closeAll, closeAllNow } from '../../lib/close-all.ts'
import { KernelError, UnsupportedError } from '../../lib/errors.ts'
import { type Family, isLinkLocal, isLoopback, joinHostPort, ipBytes } from '../../lib/ip.ts'
import type { Logger } from '../../lib/log.ts'
import type { NodeView } from '../../model/types.ts'
import { USERSPACE_TABLE } from './plan/planner.ts'
import type { DataPlane } from '../../data-path/data-plane.ts'
import { lookForUserspace, readPresentTables } from './look.ts'
import { readUserspace } from './walkable.ts'
import { dryRunUserspace } from './dry-run.ts'
import type { ModeHost, ModeOptions, RunningMode } from '../contract.ts'
import { overLimitMetric } from '../over-limit.ts'
import { trafficCounters } from '../traffic.ts'
import { recallBackends } from './recall.ts'
import { forgetFlows } from '../../data-path/forget-flows.ts'
import { openUserspaceTraffic } from './traffic.ts'
import { acquireDataPath } from '../../data-path/data-path.ts'
import { MissingListeners } from './missing-listeners.ts'
import { UserspaceProgrammer } from './programmer.ts'
import { failingBackends, formatUserspaceStatus, registerUserspaceMetrics } from './report.ts'
import { probeLimits } from '../../nftables/probe-limits.ts'
import { deleteTables, openWatchedTables, type WatchedTables } from '../../nftables/watched-tables.ts'

export const userspaceMachine: ModeHost = {
  look: lookForUserspace,
  readPresent: readPresentTables,
  readWalkable: readUserspace,
  dryRun: dryRunUserspace,
  open: openUserspace,
  cleanup: (log) => deleteTables(USERSPACE_TABLE, log),
}

const SUCCEEDED =
  'Another process of this program has taken over; it has the rules, and this one lets its connections end'
const TOO_FEW_FDS =
  'Cannot open listeners, so clients of their services are refused: raise the limit of open files (LimitNOFILE, ulimit -n)'
const FEW_FDS = 4096
/** Pods are killed 30 s after they have been asked to end. */
const DRAIN_LIMIT_MS = 25_000
const DRAIN_CHECK_MS = 20

function openUserspace(options: ModeOptions): RunningMode {
  const { config, log, families, clock } = options
  const dataPath = acquireDataPath(config.userspace, (message) => log.warn(message))
  const { plane, listeners } = dataPath
  let tables: WatchedTables
  try {
    tables = openTables(options)
  } catch (error) {
    dataPath.release()
    throw error
  }
  raiseLimits(log)
  const counters = trafficCounters(families, { table: USERSPACE_TABLE })
  let canLimit: boolean | undefined
  const programmers = new Map<Family, UserspaceProgrammer>()
  const missing = new Map<Family, MissingListeners>()
  const stopReporting = () => {
    for (const each of missing.values()) each.stop()
  }
  const served = families.map((family) => [family, listeners[family]] as const)
  return {
    traffic: (family) => openUserspaceTraffic({ kernel: counters(family), listeners: listeners[family], plane }),
    canLimit: () => (canLimit ??= probeLimits()),
    overLimit: overLimitMetric(USERSPACE_TABLE, families),
    remembered: (question) => recallBackends(plane, listeners[question.family], question),
    programmer(family, { metrics, onRefused }) {
      if (programmers.size === 0) registerUserspaceMetrics(metrics, served, missing)
      const ofFamily = missingListeners(`IPv${family}`, options, onRefused)
      missing.set(family, ofFamily)
      const programmer = new UserspaceProgrammer({
        listeners: listeners[family],
        driver: tables.driver(family),
        clock,
        listenAddress,
        onSuccessor: (listener) => {
          if (listener !== undefined)
            log.warn(SUCCEEDED, { ipFamily: `IPv${family}`, listener: joinHostPort(listener.address, listener.port) })
          else {
            log.warn('The process that had taken over is gone; serving again', { ipFamily: `IPv${family}` })
            options.onTakenBack?.()
            options.onForeignChange(family)
          }
        },
        onRefused: (name, reason) => {
          log.error(undefined, 'Cannot serve a service port: its clients are refused', { servicePort: name, reason })
          onRefused(name, reason)
        },
        onMissing: (now) => ofFamily.note(now),
      })
      programmers.set(family, programmer)
      return programmer
    },
    flowTargets: (family, view) => programmers.get(family)?.flowTargets(view) ?? [],
    failing: (family) => failingBackends(listeners[family]),
    status: () => formatUserspaceStatus(served, missing),
    close: () =>
      closeAllNow(
        () => stopReporting(),
        () => tables.close(),
        () => dataPath.release(),
      ),
    serves: () => {
      const all = [...programmers.values()]
      return all.length > 0 && all.every((programmer) => programmer.hasServed && !programmer.isSucceeded())
    },
    end: (signal) => {
      const udp = families.map((family) => [family, listeners[family].udp()] as const)
      return closeAll(
        () => stopReporting(),
        // Withdrawing needs the watch, which has to look away from a large transaction.
        ...Array.from(programmers.values(), (programmer) => () => programmer.withdraw()),
        () => tables.close(),
        () => plane.settle(),
        ...udp.map(
          ([family, ports]) =>
            () =>
              forgetFlows(family, ports),
        ),
        () => drain(plane, { log, signal }),
        () => plane.stop(),
        () => {
          // In an upgrade the next process may serve already: the rules are its own then.
          const isSucceeded = [...programmers.values()].some((programmer) => programmer.isSucceeded())
          if (!isSucceeded) deleteTables(USERSPACE_TABLE, log)
        },
      )
    },
  }
}

function openTables({ families, onForeignChange }: ModeOptions): WatchedTables {
  try {
    return openWatchedTables({ table: USERSPACE_TABLE, families, onForeignChange })
  } catch (error) {
    if (!(error instanceof KernelError) || error.errno !== 'EPERM') throw error
    throw new UnsupportedError('the userspace mode', 'its redirect rules need CAP_NET_ADMIN', { cause: error })
  }
}

function missingListeners(
  ipFamily: string,
  { log, clock }: ModeOptions,
  onRefused: (name: string, reason: string) => void,
): MissingListeners {
  return new MissingListeners({
    clock,
    onMissing: ({ listeners, first }) => {
      const limit = readFdLimit()
      log.error(undefined, TOO_FEW_FDS, { ipFamily, listeners, first, limit })
      onRefused(
        first,
        `${listeners} listeners are missing, this is the first: the limit of open files is ${limit}, raise it`,
      )
    },
    onOver: () => log.info('All listeners are open: there are file descriptors for them again', { ipFamily }),
  })
}

function raiseLimits(log: Logger): void {
  const limit = raiseFdLimit()
  if (limit >= FEW_FDS) log.v(1)?.info('Limit of open files', { limit })
  else
    log.warn('Few connections can be proxied: each takes two open files', { limit, recommended: `at least ${FEW_FDS}` })
}

/** This node's address, when it is one of this machine; otherwise any that packets can be sent to. */
function listenAddress({ family, nodeIp }: NodeView): string {
  const addresses = listAddresses().filter((each) => each.family === family)
  if (addresses.some(({ address }) => address === nodeIp)) return nodeIp
  const usable = addresses.find(({ address }) => {
    const bytes = ipBytes(address)
    return !isLoopback(bytes) && !isLinkLocal(bytes)
  })
  return usable?.address ?? nodeIp
}

/** Waits until all connections have ended, or the time is over, or a second signal has come. */
async function drain(plane: DataPlane, { log, signal }: { log: Logger; signal: AbortSignal }): Promise<void> {
  const startMs = performance.now()
  if (!plane.isIdle) log.info('Waiting for connections to end', { active: plane.active, limitMs: DRAIN_LIMIT_MS })
  while (!plane.isIdle && !signal.aborted && performance.now() - startMs < DRAIN_LIMIT_MS) {
    await sleep(DRAIN_CHECK_MS, undefined, { signal }).catch(() => {})
  }
  if (!plane.isIdle) log.warn('Ending with open connections', { active: plane.active })
}
