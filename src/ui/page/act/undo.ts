// The action that takes back another.

import type { Action, Snapshot } from '../../protocol.ts'

/** By the state before it; null: it changes nothing, or mends itself. */
export function undoOf(action: Action, { pods, deployments, services, nodes, load }: Snapshot): Action | null {
  const serviceOf = ({ namespace, service }: { readonly namespace: string; readonly service: string }) =>
    services.find((each) => each.namespace === namespace && each.name === service)
  switch (action.action) {
    case 'fail': {
      const pod = pods.find(({ namespace, name }) => namespace === action.namespace && name === action.pod)
      return pod === undefined || pod.fail === action.how ? null : { ...action, how: pod.fail }
    }
    case 'scale': {
      const found = deployments.find(
        ({ namespace, name }) => namespace === action.namespace && name === action.deployment,
      )
      return found === undefined || found.replicas === action.replicas ? null : { ...action, replicas: found.replicas }
    }
    case 'policy': {
      const before = serviceOf(action)?.[action.field]
      return before === undefined || before === action.value ? null : { ...action, value: before }
    }
    case 'affinity': {
      const service = serviceOf(action)
      const before = service?.affinitySeconds === null ? 'None' : 'ClientIP'
      return service === undefined || before === action.value ? null : { ...action, value: before }
    }
    case 'connect-retry': {
      const service = serviceOf(action)
      const before = service?.connectRetry === true ? 'on' : 'off'
      return service === undefined || before === action.value ? null : { ...action, value: before }
    }
    case 'balance': {
      const before = serviceOf(action)?.balance
      return before === undefined || before === action.value ? null : { ...action, value: before }
    }
    case 'mode': {
      const before = nodes.find(({ name }) => name === action.node)?.mode
      return before === undefined || before === action.mode ? null : { ...action, mode: before }
    }
    case 'api-server-away':
      return { action: 'api-server-back' }
    case 'load':
      return load === null ? { action: 'load-end' } : { action: 'load', ...load }
    case 'load-end':
      return load === null ? null : { action: 'load', ...load }
    default:
      return null
  }
}
