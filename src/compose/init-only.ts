// `--init-only`: writes the kernel settings, which takes more rights than the proxy needs later.

import type { RunOptions } from '../config/run-options.ts'
import { modeNamed, modes } from '../modes/all.ts'
import { applyKernelSettings } from './settings.ts'

export async function runInitOnly({ config, log }: Pick<RunOptions, 'config' | 'log'>): Promise<void> {
  applyKernelSettings(config, log)
  const mode = await modeNamed(config.mode).load()
  await mode.init?.(config, log)
  for (const other of modes) {
    if (other.name === config.mode) continue
    try {
      await (await other.load()).giveBack?.(log)
    } catch (error) {
      log.error(error, 'Cannot give back kernel settings of another mode', { mode: other.name })
    }
  }
  log.info('Initialised, ending because of --init-only')
}
