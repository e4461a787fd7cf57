// The packet-flow table against `kube-proxy explain`: for each flow that a mode promises, the decision that is explained is
// the table's outcome, and a packet that walks through what the mode plans does what was decided.

import { describe, expect, test } from 'vitest'
import type { Decision } from '../../src/diagnose/explain/decide.ts'
import { decideAll, type Decided, type Known } from '../../src/diagnose/explain/known.ts'
import type { Family } from '../../src/lib/ip.ts'
import type { Walkable } from '../../src/packet-walk/types.ts'
import { modeNamed } from '../../src/modes/all.ts'
import { hostAt, nodeAddresses } from '../support/addresses.ts'
import type { ApiObject } from '../support/builders.ts'
import { type FlowContext, explainFlow } from '../support/explain-flow.ts'
import { plannedWalkables } from '../support/planned-walkable.ts'
import { decodeObjects, nodeViewOf } from '../support/planned-node.ts'
import { quarter } from '../support/runs.ts'
import { isPromisedBy, type ModeName } from './modes.ts'
import { packetFlowCases } from './packet-flow.cases.ts'
import { type Flow, type Outcome, type ProxySettings } from './packet-flow.ts'

const modeNames = ['nftables', 'iptables', 'ipvs', 'userspace'] as const

describe.each(modeNames)('explain in mode %s', (mode) => {
  test.for(quarter(packetFlowCases, modeNames.indexOf(mode)))('$name', async (row, { skip }) => {
    if (!isPromisedBy(mode, row)) skip(`${mode} does not promise it`)
    let objects = new Map<string, ApiObject>()
    const change = (put: readonly ApiObject[], remove: readonly ApiObject[]) => {
      objects = new Map(objects)
      for (const object of remove) objects.delete(keyOf(object))
      for (const object of put) objects.set(keyOf(object), object)
    }
    change(row.objects, [])
    await expectFlows(mode, row.settings, [...objects.values()], row.flows)
    for (const step of row.steps) {
      change(step.put ?? [], step.remove ?? [])
      await expectFlows(mode, row.settings, [...objects.values()], step.flows)
    }
  })
})

async function expectFlows(
  mode: ModeName,
  settings: ProxySettings,
  objects: readonly ApiObject[],
  flows: readonly Flow[],
): Promise<void> {
  const known = knownOf(mode, settings, objects)
  const families = new Map<Family, { decided: Decided; walkable: Walkable }>()
  for (const flow of flows) {
    const family = flow.to.address.includes(':') ? 6 : 4
    if (!families.has(family)) {
      const decided = decideAll(known, family)!
      families.set(family, {
        decided,
        walkable: await plannedWalkables[mode](decided.node, [...decided.model.views()]),
      })
    }
    expectFlow(flow, { known, ...families.get(family)! })
  }
}

function expectFlow(flow: Flow, context: FlowContext): void {
  const { decision, differences, about } = explainFlow(flow, context)
  expect(shownOf(decision, flow.from), about).toEqual(expectedOf(flow.outcome))
  expect(differences, about).toEqual([])
}

/** What the table says of an outcome that an explanation can say, too. */
function expectedOf(outcome: Outcome): unknown {
  if (outcome.kind !== 'to') return outcome.kind
  const backends = outcome.backends.map(({ host, port }) => `${host}:${port}`)
  return { backends: outcome.sticky ? expect.arrayContaining(backends) : backends.sort(), seenAs: outcome.seenAs }
}

function shownOf({ outcome, backends }: Decision, from: string): unknown {
  if (outcome !== 'to') return outcome
  const eligible = backends.filter((each) => each.eligible)
  const seenAs = from === 'node' || eligible.every(({ masquerade }) => masquerade) ? 'node' : 'client'
  return { backends: [...new Set(eligible.map(({ ip, port }) => `${hostAt(ip) ?? ip}:${port}`))].sort(), seenAs }
}

function knownOf(name: ModeName, settings: ProxySettings, objects: readonly ApiObject[]): Known {
  const mode = modeNamed(name)
  const view = (family: Family) => nodeViewOf(family, settings, mode.defaultNodePortAddresses)
  return {
    source: 'a row of the packet-flow table',
    hasObjects: true,
    mode,
    nodes: { 4: view(4), 6: view(6) },
    machineAddresses: nodeAddresses,
    ...decodeObjects(objects),
    allowExternalIPs: true,
    localhostNodePorts: true,
    connectRetry: false,
    ejected: new Map(),
    otherNodes: [],
    pods: [],
  }
}

function keyOf({ kind, metadata }: ApiObject): string {
  return `${kind} ${metadata.namespace}/${metadata.name}`
}
