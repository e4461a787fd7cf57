// `kube-proxy check`: reads all there is to know and judges it. Changes nothing.

import type { RunOptions } from '../../config/run-options.ts'
import { modes } from '../../modes/all.ts'
import { nodeNameOf } from '../../compose/settings.ts'
import { finding } from './finding-kinds.ts'
import type { CheckReport } from './format.ts'
import { judge } from './judge.ts'
import { readApi } from './read-api.ts'
import { readFacts } from './read-facts.ts'
import { readMark } from './read-mark.ts'
import { readModes, readOthers, readRules } from './read-machine.ts'

export async function runCheck(options: RunOptions, warnings: readonly string[]): Promise<CheckReport> {
  const { config, version, master, manifests } = options
  const nodeName = nodeNameOf(config)
  const facts = await readFacts(options, warnings, {
    answers: await readApi({ settings: { ...config.clientConnection, master }, manifests, nodeName }),
    readModes: (families) => readModes(config, families),
    readOthers: async (families) => ({
      ...readOthers(config),
      rules: await readRules(config, families),
      mark: await readMark(config),
    }),
  })
  return { ...judge(facts, modes), version, nodeName }
}

/** For a configuration that cannot be used: nothing can be said of the rest then. */
export function refusedConfiguration(message: string, version: string): CheckReport {
  const mode = { asked: '', chosen: undefined, givenUp: [] }
  return { version, nodeName: '', mode, findings: [finding('config-invalid', message)] }
}
