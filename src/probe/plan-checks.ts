// Every connection that the test makes, and what has to come of it. Pure.

import type { Check, Client, Expected, Facts, Phase, Row } from './checks.ts'
import {
  clusterTargets,
  emptyTargets,
  externalTargets,
  networkTargets,
  nodePortTargets,
  nodesDialled,
  policyTargets,
} from './start-targets.ts'
import { type Asked, atClusterIp, atNodePort, namesAt, ownNode, SILENCE_MS, type Target, times } from './targets.ts'

const ANSWER_WITHIN_MS = 2500

/** Checks of the phase, for each client, family and protocol. */
export function planChecks(facts: Facts, phase: Phase): Check[] {
  const clients: Client[] = facts.nodes.flatMap(({ name }) => [
    { kind: 'pod', node: name },
    { kind: 'node', node: name },
  ])
  if (facts.outside) clients.push({ kind: 'outside', node: '' })
  const checks: Check[] = []
  for (const family of facts.families) {
    for (const client of clients) {
      for (const protocol of ['TCP', 'UDP'] as const) {
        const asked = { facts, client, family, protocol, phase }
        for (const target of targetsOf(asked)) checks.push(...checkOf(asked, target))
      }
    }
  }
  return checks
}

/** None where there is nothing to dial, or the row is skipped. */
function checkOf({ facts, client, family, protocol, phase }: Asked, target: Target): [] | [Check] {
  const { row, via, proxy, to, service, address, port, expected, dial, protocols } = target
  if (address === undefined || port === undefined || facts.skip.has(row)) return []
  if (protocols !== undefined && !protocols.includes(protocol)) return []
  const from = client.kind === 'outside' ? 'outside' : `${client.kind} on ${client.node}`
  const what = row === via ? row : `${row}, ${via}`
  const id = `${phase}: ${what}, ${protocol}, IPv${family}, from ${from}, at ${proxy}`
  const timeoutMs = timeoutOf(expected)
  const whole = { address, port, protocol, times: 1, wait: 'greeting', timeoutMs, ...dial } as const
  return [{ id, row, via, phase, proxy, to, client, family, protocol, service, expected, dial: whole }]
}

function timeoutOf({ kind }: Expected): number {
  return kind === 'nothing' ? SILENCE_MS : ANSWER_WITHIN_MS
}

function targetsOf(asked: Asked): Target[] {
  const { phase, client } = asked
  if (phase !== 'start') return client.kind === 'outside' ? [] : changeTargets(asked)
  if (client.kind === 'outside') return asked.facts.nodes.flatMap((node) => nodePortTargets(asked, node))
  return [
    ...networkTargets(asked),
    ...clusterTargets(asked),
    ...externalTargets(asked),
    ...nodesDialled(asked).flatMap((node) => nodePortTargets(asked, node)),
    ...policyTargets(asked),
    ...emptyTargets(asked),
    ...keptSocketTargets(asked),
  ]
}

/** A socket that goes on sending while its endpoint is replaced. */
function keptSocketTargets(asked: Asked): Target[] {
  const by = namesAt(asked)
  const dial = { socket: `change-IPv${asked.family}` }
  const expected = { kind: 'answer', by } as const
  return [atClusterIp(asked, 'change', { row: 'open UDP socket', expected, dial, protocols: ['UDP'] })]
}

const rowOfPhase: Readonly<Record<Exclude<Phase, 'start'>, Row>> = {
  replaced: 'endpoint replaced',
  terminating: 'terminating endpoint',
  gone: 'last endpoint gone',
  back: 'endpoint back',
}

function changeTargets(asked: Asked): Target[] {
  const { phase } = asked
  const row = rowOfPhase[phase as Exclude<Phase, 'start'>]
  const by = namesAt(asked)
  const expected: Expected = by.length === 0 ? { kind: 'refusal' } : { kind: 'answer', by }
  const dial = by.length === 0 ? {} : { times: times.few }
  return [
    atClusterIp(asked, 'change', { row, expected, dial }),
    atNodePort(asked, ownNode(asked), 'change', { row, expected, dial }),
    ...(phase === 'replaced' ? keptSocketTargets(asked) : []),
  ]
}
