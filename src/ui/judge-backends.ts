// Whether a node's proxy uses each backend, for pods of that node that dial the cluster IP.

import { decideAll, type Known } from '../diagnose/explain/known.ts'
import { joinHostPort } from '../lib/ip.ts'
import { NO_EJECTIONS, siftEjected } from '../model/ejections.ts'
import { planSelection, whyNotSelected } from '../model/topology.ts'

export interface BackendVerdict {
  /** Why it is not used; undefined: it is. */
  readonly why: string | undefined
  readonly ejected: boolean
}

/** By service port (`default/web:http`) and address of the backend (`10.1.0.5:8080`). */
export type BackendVerdicts = ReadonlyMap<string, ReadonlyMap<string, BackendVerdict>>

const USED: BackendVerdict = { why: undefined, ejected: false }

/** Cached for each answer of the proxy. */
const judged = new WeakMap<Known, BackendVerdicts>()

export function judgeBackends(known: Known): BackendVerdicts {
  const before = judged.get(known)
  if (before !== undefined) return before
  const verdicts = judge(known)
  judged.set(known, verdicts)
  return verdicts
}

function judge(known: Known): BackendVerdicts {
  const verdicts = new Map<string, Map<string, BackendVerdict>>()
  for (const family of [4, 6] as const) {
    const decided = decideAll(known, family)
    if (decided === undefined) continue
    const { model, node, services } = decided
    for (const view of model.views()) {
      const policy =
        services.get(`${view.namespace}/${view.service}`)?.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster'
      const endpoints = model.endpointsOf(view)
      const selection = planSelection(endpoints, policy, node)
      const selected = endpoints.filter((each) => whyNotSelected(each, selection, node) === undefined)
      const ejections = view.connectRetry === true ? new Set(known.ejected.keys()) : NO_EJECTIONS
      const ejected = new Set(siftEjected(selected, ejections).ejected)
      let ofPort = verdicts.get(view.name)
      if (ofPort === undefined) verdicts.set(view.name, (ofPort = new Map()))
      for (const endpoint of endpoints) {
        const address = joinHostPort(endpoint.ip, endpoint.port)
        const isEjected = ejected.has(endpoint)
        const why = isEjected ? `ejected: ${known.ejected.get(address)}` : whyNotSelected(endpoint, selection, node)
        ofPort.set(address, why === undefined ? USED : { why, ejected: isEjected })
      }
    }
  }
  return verdicts
}
