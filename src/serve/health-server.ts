// /healthz and /livez on the healthz port: for load balancers and for the kubelet.

import { formatJsonTime } from './go-time.ts'
import { listen, type Listener, type ListenOptions } from './listen.ts'
import type { Health, ProxyHealth } from './proxy-health.ts'
import { jsonReply, listenerFor, notFound, type Page } from './reply.ts'
import type { Reply } from './http-server.ts'

/** How often each answer was given, by status code. */
export interface HealthCounters {
  readonly healthz: CodeCounter
  readonly livez: CodeCounter
}

interface CodeCounter {
  with(code: string): { inc(): void }
}

export interface HealthServerOptions extends Omit<ListenOptions, 'name' | 'handler' | 'network'> {
  readonly health: ProxyHealth
  readonly counters: HealthCounters
}

/** Serves healthPage(); nowhere when the address is empty. */
export function serveHealth(options: HealthServerOptions): Listener | undefined {
  const handler = listenerFor(healthPage(options.health, options.counters), options.log)
  return listen({ ...options, name: 'healthz', handler })
}

/**
 * - /healthz: the proxy keeps up and the node will stay: send new connections here.
 * - /livez: the proxy keeps up. A node that is about to go needs no restart of its proxy.
 *
 * Any method is answered, as upstream does: some load balancers probe with OPTIONS.
 */
export function healthPage(health: ProxyHealth, counters: HealthCounters): Page {
  return ({ path }) => {
    switch (path) {
      case '/healthz':
        return counted(counters.healthz, healthReply(health.health(), health.nodeEligible()))
      case '/livez':
        return counted(counters.livez, healthReply(health.health(), undefined))
      default:
        return notFound
    }
  }
}

function counted(counter: CodeCounter, reply: Reply): Reply {
  counter.with(String(reply.status)).inc()
  return reply
}

function healthReply(health: Health, nodeEligible: boolean | undefined): Reply {
  const ok = health.healthy && nodeEligible !== false
  const status = [...health.families].map(([family, { lastUpdatedMs, healthy }]) => [
    family,
    { lastUpdated: formatJsonTime(lastUpdatedMs), healthy },
  ])
  const body = {
    // While all is well this is the current time: it once was the time of the last sync, and syncs were frequent.
    lastUpdated: formatJsonTime(ok ? health.nowMs : health.lastUpdatedMs),
    currentTime: formatJsonTime(health.nowMs),
    nodeEligible,
    healthy: health.healthy,
    status: status.length === 0 ? undefined : Object.fromEntries(status),
  }
  return jsonReply(ok ? 200 : 503, JSON.stringify(body))
}
