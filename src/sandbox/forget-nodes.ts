import { nodes, pods } from './apiserver/resources/table.ts'
import type { Registry } from './apiserver/registry/registry.ts'

/** Deletes nodes that an earlier run had and this one has not, and the pods on them. */
export function forgetOtherNodes(registry: Registry, present: ReadonlySet<string>): void {
  for (const { object } of registry.collection(nodes).list()) {
    const { name } = object.metadata
    if (!present.has(name)) registry.delete(nodes, { namespace: '', name }, { gracePeriodSeconds: 0 })
  }
  for (const { object } of registry.collection(pods).list()) {
    const { nodeName } = object.spec
    const { name, namespace = '' } = object.metadata
    if (nodeName !== undefined && !present.has(nodeName)) {
      registry.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 })
    }
  }
}
