import { expect, test } from 'vitest'
import { packetFlowCases } from './packet-flow.cases.ts'
import type { PacketFlowCase } from './packet-flow.ts'
import type { ApiObject } from '../support/builders.ts'

test('packetFlowCases have names of their own', () => {
  expect(repeated(packetFlowCases.map((row) => row.name))).toEqual([])
})

// The rows of one setting live in one cluster at the same time.
test('packetFlowCases share no object, cluster IP or node port with another row', () => {
  expect(repeated(packetFlowCases.flatMap((row) => [...new Set(objectsOf(row).map(keyOf))]))).toEqual([])
  expect(repeated(packetFlowCases.flatMap((row) => [...new Set(objectsOf(row).flatMap(claimsOf))]))).toEqual([])
})

test('packetFlowCases expect only what an outcome can show', () => {
  const flows = packetFlowCases.flatMap((row) => [...row.flows, ...row.steps.flatMap((step) => step.flows)])
  expect(flows.filter((f) => f.outcome.kind === 'to' && f.outcome.backends.length === 0)).toEqual([])
  expect(flows.filter((f) => f.clients !== undefined && (f.from !== 'external' || f.clients > 250))).toEqual([])
})

function objectsOf(row: PacketFlowCase): readonly ApiObject[] {
  return [...row.objects, ...row.steps.flatMap((step) => [...(step.put ?? []), ...(step.remove ?? [])])]
}

function keyOf(object: ApiObject): string {
  return `${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
}

function claimsOf(object: ApiObject): string[] {
  if (object.kind !== 'Service') return []
  const nodePorts = object.spec.ports.flatMap((port) =>
    port.nodePort === undefined ? [] : [`node port ${port.nodePort}`],
  )
  return [...object.spec.clusterIPs, ...nodePorts]
}

function repeated(values: readonly string[]): string[] {
  return values.filter((value, i) => values.indexOf(value) !== i)
}
