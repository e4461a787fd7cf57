// Tests with packets store the objects of the packet-flow table unvalidated. Here each goes through the rules of the API
// server: a row about objects that no cluster can have would promise nothing.

import { expect, test } from 'vitest'
import { bootstrap } from '../../packages/sandbox/src/apiserver/bootstrap.ts'
import { createRegistry } from '../../packages/sandbox/src/apiserver/start-api-server.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { messageOf } from '../../src/lib/errors.ts'
import { endpointSlices, namespaces, services } from '../../packages/sandbox/src/apiserver/resources/table.ts'
import { Store } from '../../packages/sandbox/src/apiserver/store/store.ts'
import { ranges } from '../support/addresses.ts'
import { packetFlowCases } from './packet-flow.cases.ts'
import type { ApiObject } from '../support/builders.ts'
import type { PacketFlowCase } from './packet-flow.ts'
import type { Resource } from '../../packages/sandbox/src/apiserver/resources/resource.ts'
import type { Registry } from '../../packages/sandbox/src/apiserver/registry/registry.ts'

/** Rows about what gets past a server of another version, or past none. */
const refusedRows: ReadonlyMap<string, RegExp> = new Map([
  ['slices: addresses of the wrong family, or none at all, are ignored', /endpoints\[\d\]\.addresses/],
])

test.each(packetFlowCases)('$name', (row) => {
  const problem = storeRow(row)
  const refused = refusedRows.get(row.name)
  if (refused === undefined) expect(problem).toBe('')
  else expect(problem).toMatch(refused)
})

/** Stores the objects of a row, step by step. Returns why the API server refuses one of them; empty: it does not. */
function storeRow(row: PacketFlowCase): string {
  const registry = createRegistry(new Store(), new ManualClock(0))
  bootstrap(registry, { serviceCidrs: [ranges.services[4], ranges.services[6]] })
  try {
    for (const object of row.objects) put(registry, object)
    for (const step of row.steps) {
      for (const object of step.remove ?? []) registry.delete(resourceOf(object), placeOf(object))
      for (const object of step.put ?? []) put(registry, object)
    }
    return ''
  } catch (error) {
    return messageOf(error)
  }
}

function put(registry: Registry, object: ApiObject): void {
  const resource = resourceOf(object)
  const place = placeOf(object)
  const name = { namespace: '', name: place.namespace }
  if (registry.find(namespaces, name) === undefined) registry.create(namespaces, { metadata: { name: name.name } })
  const sent = asSent(object)
  if (registry.find(resource, place) === undefined) registry.create(resource, sent)
  else registry.update(resource, sent)
}

/** Without what only the API server says about an object, and with the policy that its addresses stand for. */
function asSent(object: ApiObject): object {
  const { uid: _, creationTimestamp: __, ...metadata } = object.metadata
  if (object.kind !== 'Service') return { ...object, metadata }
  const ipFamilyPolicy = object.spec.clusterIPs.length === 1 ? 'SingleStack' : 'RequireDualStack'
  return { ...object, metadata, spec: { ...object.spec, ipFamilyPolicy } }
}

function resourceOf({ kind }: ApiObject): Resource {
  return kind === 'Service' ? services : endpointSlices
}

function placeOf({ metadata }: ApiObject): { readonly namespace: string; readonly name: string } {
  return { namespace: metadata.namespace ?? '', name: metadata.name }
}
