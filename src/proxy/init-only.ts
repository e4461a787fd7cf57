// What needs more rights than the proxy does later: kernel settings.

import type { RunOptions } from '../config/run-options.ts'
import { modeNamed } from '../modes/all.ts'
import { applyKernelSettings } from './settings.ts'

export async function runInitOnly({ config, log }: Pick<RunOptions, 'config' | 'log'>): Promise<void> {
  applyKernelSettings(config, log)
  const mode = await modeNamed(config.mode).load()
  await mode.init?.(config, log)
  log.info('Initialised, ending because of --init-only')
}
