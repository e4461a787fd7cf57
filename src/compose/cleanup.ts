// Removes everything that the proxy and kube-proxy created on this machine.

import type { RunOptions } from '../config/run-options.ts'
import type { Mode } from '../modes/contract.ts'
import type { KubeProxyConfiguration } from '../config/types.ts'
import type { Logger } from '../lib/log.ts'
import { cleanUpCounting, modeNamed, modes } from '../modes/all.ts'
import { cleanUpRetries } from '../retry/cleanup.ts'

/** `--cleanup`: of every mode. */
export async function runCleanup({ config, log }: RunOptions): Promise<void> {
  const failures = [...(await cleanUpModes(modes, { config, log }))]
  try {
    cleanUpRetries(log)
  } catch (error) {
    log.error(error, 'Cannot remove the retry table')
    failures.push(error)
  }
  try {
    await cleanUpCounting(log)
  } catch (error) {
    log.error(error, 'Cannot remove the table that counts')
    failures.push(error)
  }
  if (failures.length > 0) throw new AggregateError(failures, 'Cannot clean up everything, see above')
}

/**
 * `--cleanup-leftovers`: kube-proxy has taken this node back, in the configured mode. Removes all of the other modes, and the parts of
 * this mode that kube-proxy does not use. Keeps the chains that the ipvs mode of kube-proxy shares with its iptables mode.
 */
export async function runLeftoverCleanup({ config, log }: RunOptions): Promise<void> {
  const shared = config.mode === 'ipvs' ? ['ipvs', 'iptables'] : [config.mode]
  const others = modes.filter(({ name }) => !shared.includes(name))
  const failures = await cleanUpModes(others, { config, log })
  const mode = await modeNamed(config.mode).load()
  await mode.cleanupLeftovers?.(log)
  cleanUpRetries(log)
  await cleanUpCounting(log)
  if (failures.length > 0) throw new AggregateError(failures, 'Cannot clean up everything, see above')
}

/** Cleans up each mode, also when another one fails. Logs and returns the errors. */
export async function cleanUpModes(
  leaving: readonly Mode[],
  { config, log }: { readonly config: KubeProxyConfiguration; readonly log: Logger },
): Promise<readonly unknown[]> {
  const failures: unknown[] = []
  for (const mode of leaving) {
    try {
      await (await mode.load()).cleanup(log, config)
    } catch (error) {
      log.error(error, 'Cannot remove everything that the mode left behind', { mode: mode.name })
      failures.push(error)
    }
  }
  return failures
}
