// A random history of one service: endpoints that fail, go and return while clients wait for them.

import type { Family } from '../../../src/lib/ip.ts'
import type { Dice } from '../random-clusters.ts'

export type ClientSource = 'localPod' | 'node' | 'external'
/** What becomes of a packet that reaches an endpoint. */
export type Fate = 'answers' | 'silent' | 'refuses'
/** How its slice has an endpoint. */
export type Listed = 'ready' | 'terminating' | 'unready' | 'gone'

export interface History {
  readonly family: Family
  readonly protocol: 'TCP' | 'UDP'
  readonly frontend: 'cluster IP' | 'node port'
  readonly policy: 'Cluster' | 'Local'
  /** In seconds. A short one ends while the history goes on. */
  readonly affinity: undefined | 1 | 10800
  readonly retry: boolean
  /** Where each endpoint is. All are ready and answer at first. */
  readonly endpoints: readonly ('local' | 'remote')[]
  readonly clients: readonly ClientSource[]
  /** So many more clients, from outside, that come once. */
  readonly crowd: number
  readonly steps: readonly Step[]
}

export type Step = { readonly afterMs: number } & (
  | { readonly do: 'fate'; readonly endpoint: number; readonly fate: Fate }
  | { readonly do: 'list'; readonly endpoint: number; readonly as: Listed }
  /** A new connection, or UDP flow; the end of one direction of the last one, or of all of it. */
  | { readonly do: 'connect' | 'half-close' | 'hang up'; readonly client: number }
)

const MOST_ACTS = 5
const CROWD = 120

export function aHistory(dice: Dice): History {
  const protocol = dice.pick(['TCP', 'UDP'] as const)
  const affinity = dice.pick([undefined, 10800, 10800, 1] as const)
  const endpoints = Array.from({ length: 1 + dice.below(4) }, () => dice.pick(['local', 'local', 'remote'] as const))
  const clients = Array.from({ length: 1 + dice.below(2) }, () => dice.pick(['localPod', 'node', 'external'] as const))
  return {
    family: dice.pick([4, 6] as const),
    protocol,
    frontend: dice.pick(['cluster IP', 'node port'] as const),
    policy: dice.pick(['Cluster', 'Cluster', 'Local'] as const),
    affinity,
    retry: protocol === 'TCP' && dice.one(4),
    endpoints,
    clients,
    crowd: affinity === 1 && dice.one(2) ? CROWD : 0,
    steps: Array.from({ length: 1 + dice.below(MOST_ACTS) }, () =>
      anAct(dice, endpoints.length, clients.length),
    ).flat(),
  }
}

type Act = 'dies' | 'drains' | 'returns' | 'fails' | 'changes' | 'connects' | 'leaves'
const ACTS: readonly Act[] = ['dies', 'dies', 'drains', 'returns', 'fails', 'changes', 'connects', 'leaves']

/** What goes wrong takes several steps in a row, so some of them come together. */
function anAct(dice: Dice, endpoints: number, clients: number): Step[] {
  const endpoint = dice.below(endpoints)
  const client = dice.below(clients)
  const afterMs = () => dice.pick([0, 20, 100, 400])
  const fate = (as: Fate): Step => ({ afterMs: afterMs(), do: 'fate', endpoint, fate: as })
  const list = (as: Listed): Step => ({ afterMs: afterMs(), do: 'list', endpoint, as })
  const connect = (): Step => ({ afterMs: afterMs(), do: 'connect', client })
  switch (dice.pick(ACTS)) {
    case 'dies':
      return [fate(dice.pick(['silent', 'silent', 'refuses'])), connect(), list(dice.pick(['gone', 'unready']))]
    case 'drains':
      return [connect(), list('terminating'), list('gone')]
    case 'returns':
      return [fate('answers'), list('ready')]
    case 'fails':
      return [fate(dice.pick(['silent', 'refuses', 'answers'])), connect()]
    case 'changes':
      return [list(dice.pick(['ready', 'terminating', 'unready', 'gone']))]
    case 'connects':
      return [connect(), connect()]
    case 'leaves':
      return [{ afterMs: afterMs(), do: dice.pick(['half-close', 'hang up']), client }]
  }
}

/** Histories with less in them, for the search for the smallest that fails. */
export function simplerHistories(history: History): History[] {
  const { steps, endpoints, clients } = history
  const without = <T>(list: readonly T[], i: number) => [...list.slice(0, i), ...list.slice(i + 1)]
  const halves = steps.length < 4 ? [] : [steps.slice(0, steps.length >> 1), steps.slice(steps.length >> 1)]
  return [
    ...halves.map((half) => ({ ...history, steps: half })),
    ...steps.map((_, i) => ({ ...history, steps: without(steps, i) })),
    ...(clients.length > 1
      ? clients.map((_, i) => ({
          ...history,
          clients: without(clients, i),
          steps: steps.flatMap((step): Step[] => {
            if (!('client' in step)) return [step]
            return step.client === i ? [] : [{ ...step, client: step.client > i ? step.client - 1 : step.client }]
          }),
        }))
      : []),
    ...(endpoints.length > 1
      ? endpoints.map((_, i) => ({
          ...history,
          endpoints: without(endpoints, i),
          steps: steps.flatMap((step): Step[] => {
            if (!('endpoint' in step)) return [step]
            const { endpoint } = step
            return endpoint === i ? [] : [{ ...step, endpoint: endpoint > i ? endpoint - 1 : endpoint }]
          }),
        }))
      : []),
    ...(history.crowd > 0 ? [{ ...history, crowd: 0 }] : []),
    ...(history.retry ? [{ ...history, retry: false }] : []),
    ...(history.policy === 'Local' ? [{ ...history, policy: 'Cluster' as const }] : []),
    ...(history.frontend === 'node port' ? [{ ...history, frontend: 'cluster IP' as const }] : []),
    ...(history.affinity === undefined ? [] : [{ ...history, affinity: undefined }]),
    ...(history.family === 6 ? [{ ...history, family: 4 as const }] : []),
  ]
}

/** The places of the endpoints that a new connection of a client may reach, by what the slice says now. */
export function eligible(history: History, listed: readonly Listed[], client: ClientSource): number[] {
  const { frontend, policy, endpoints } = history
  // Pods and the node reach every endpoint through what is meant for clients from outside.
  const isLocal = policy === 'Local' && (frontend === 'cluster IP' || client === 'external')
  const mine = endpoints.flatMap((place, i) => (isLocal && place === 'remote' ? [] : [i]))
  const ready = mine.filter((i) => listed[i] === 'ready')
  return ready.length > 0 ? ready : mine.filter((i) => listed[i] === 'terminating')
}

/** The places of the endpoints to which a UDP flow may go on. */
export function serving(listed: readonly Listed[]): number[] {
  return listed.flatMap((as, i) => (as === 'ready' || as === 'terminating' ? [i] : []))
}
