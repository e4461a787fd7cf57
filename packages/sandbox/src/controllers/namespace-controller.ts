// Empties namespaces that are deleted, and makes what a new one has.

import { isDeleting } from '../apiserver/objects/meta.ts'
import { namespaces, resources, serviceAccounts } from '../apiserver/resources/table.ts'
import type { ControllerContext } from './controller.ts'

const contents = resources.filter(({ namespaced, storedAs }) => namespaced && storedAs === undefined)

export function startNamespaceController(context: ControllerContext): void {
  const { registry, loop } = context
  const queue = loop.queue('namespaces', (name) => sync(context, name))
  const all = registry.collection(namespaces)
  all.watchKeys(queue.add)
  for (const resource of contents) {
    registry.collection(resource).listen(({ after, before }) => {
      const name = before?.object.metadata.namespace ?? ''
      const namespace = after === undefined ? all.get(name)?.object : undefined
      if (namespace !== undefined && isDeleting(namespace)) queue.add(name)
    })
  }
}

function sync({ registry }: ControllerContext, name: string): void {
  const namespace = registry.find(namespaces, { name })?.object
  if (namespace === undefined) return
  if (!isDeleting(namespace)) {
    registry.ensure(serviceAccounts, { namespace: name, name: 'default' })
    return
  }
  let left = 0
  for (const resource of contents) {
    for (const { object } of registry.collection(resource).list()) {
      if (object.metadata.namespace !== name) continue
      if (!isDeleting(object)) registry.delete(resource, object.metadata, { propagationPolicy: 'Background' })
      if (registry.find(resource, object.metadata) !== undefined) left++
    }
  }
  if (left > 0) return
  registry.modify(namespaces, { name }, ({ spec }) => (spec.finalizers = []), 'namespace finalizers')
}
