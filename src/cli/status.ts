// `kube-proxy status`: what the proxy of this node says of itself.

import { formatJson } from '../diagnose/format-json.ts'
import { ControlClient } from '../serve/control/client.ts'
import type { MetricsAnswer } from '../serve/control/metrics.ts'
import type { StateAnswer } from '../serve/control/state.ts'
import { formatStatus, planStatus } from '../diagnose/proxy-status.ts'

export interface StatusOptions {
  readonly 'control-socket': string | undefined
  readonly output: 'text' | 'json' | 'all'
}

/** Exit status: 0 in sync, 2 not. */
export async function runStatusCommand({ output, 'control-socket': socket = '' }: StatusOptions): Promise<number> {
  const client = new ControlClient(socket)
  try {
    const query = output === 'all' ? {} : { only: 'status' }
    const state = await client.ask<StateAnswer>('state', { query })
    const page = await client.ask<MetricsAnswer>('metrics')
    const status = planStatus(state, page)
    if (output === 'text') process.stdout.write(formatStatus(status))
    else process.stdout.write(formatJson({ version: 1, status, ...(output === 'all' ? { state, ...page } : {}) }))
    return status.inSyncSinceMs === null || status.refused > 0 ? 2 : 0
  } finally {
    client.close()
  }
}
