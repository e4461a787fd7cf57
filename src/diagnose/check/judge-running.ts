// The same judgement of a node on which the proxy runs: what is wrong, and nothing else. It is cheap: what the proxy knows is
// not asked again, modes that do not run are not looked at, and the API server is asked for its time alone.

import { modes } from '../../modes/all.ts'
import type { Fault, RunningNode } from '../../compose/self-check.ts'
import { judge } from './judge.ts'
import { readClock } from './read-api.ts'
import { readFacts } from './read-facts.ts'
import { readOthers, readPlannedModes } from './read-machine.ts'

/** `warnings` are those of the command line and of the file in force. */
export async function judgeRunning({ options, node }: RunningNode, warnings: readonly string[]): Promise<Fault[]> {
  const { config, master, manifests } = options
  const facts = await readFacts(options, warnings, {
    answers: { api: await readClock({ settings: { ...config.clientConnection, master }, manifests }), node },
    readModes: (families) => readPlannedModes(options, families),
    // Its ports and rules are its own, and there are Events for ports that it cannot have.
    readOthers: () => ({ ...readOthers(config), ports: [], rules: new Map(), mark: { bit: 0, setters: [] } }),
  })
  return judge(facts, modes).findings.flatMap(({ code, level, message, todo }) =>
    level === 'warning' || level === 'problem' ? [{ code, level, message, todo }] : [],
  )
}
