// Ten thousand pairs of a cluster and a packet for each mode: what is explained is what a packet does that walks through what
// the mode plans. The pairs are the same in every run; EXPLAIN_SEED makes others.

import { expect, test } from 'vitest'
import { decideAll, type Known } from '../../src/diagnose/explain/known.ts'
import { modeNamed } from '../../src/modes/all.ts'
import { nodeAddresses } from '../support/addresses.ts'
import { explainConnection } from '../support/explain-flow.ts'
import { plannedWalkables } from '../support/planned-walkable.ts'
import { nodeViewOf } from '../support/planned-node.ts'
import { aRandomCluster, aRandomPacket, Dice } from '../support/random-clusters.ts'
import { runs } from '../support/runs.ts'

const CLUSTERS = runs(400).numRuns
const PACKETS = 25
const seed = Number(process.env['EXPLAIN_SEED'] ?? 1)

test.each(['nftables', 'iptables', 'ipvs', 'userspace'] as const)(
  'explanations and the plan of mode %s agree',
  async (name) => {
    const mode = modeNamed(name)
    const seen = { to: 0, reject: 0, drop: 0, untouched: 0 }
    for (let nth = 0; nth < CLUSTERS; nth++) {
      const dice = new Dice(seed * 1_000_000 + nth)
      const family = nth % 2 === 0 ? 4 : 6
      const cluster = aRandomCluster(dice, family)
      const view = nodeViewOf(family, cluster.settings, mode.defaultNodePortAddresses)
      const known: Known = {
        source: 'a random cluster',
        hasObjects: true,
        mode,
        nodes: { [family]: view },
        machineAddresses: nodeAddresses,
        services: cluster.services,
        slices: cluster.slices,
        allowExternalIPs: true,
        localhostNodePorts: true,
        connectRetry: false,
        ejected: new Map(),
        otherNodes: [],
        pods: [],
      }
      const decided = decideAll(known, family)!
      const walkable = await plannedWalkables[name](view, [...decided.model.views()])
      for (let i = 0; i < PACKETS; i++) {
        const { from, connection } = aRandomPacket(dice, family, cluster)
        const { decision, differences, about } = explainConnection(connection, { known, decided, walkable })
        seen[decision.outcome]++
        if (differences.length > 0)
          expect.fail(`cluster ${nth}, packet ${i}, ${from}: ${differences.join('; ')}\n${about}`)
      }
    }
    // Each outcome has its share, or the test would show little.
    expect(Math.min(seen.to, seen.reject, seen.drop)).toBeGreaterThan((CLUSTERS * PACKETS) / 100)
  },
)
