// What a person can do to a sandbox from the page. Each has a command that does the same: commands.ts.

import { setTimeout as sleep } from 'node:timers/promises'
import { ask } from '../../../../src/serve/control/client.ts'
import type { StateAnswer } from '../../../../src/serve/control/state.ts'
import { failAnnotation } from '../apiserver/objects/pod-annotations.ts'
import { deployments, pods, services } from '../apiserver/resources/table.ts'
import type { Sandbox } from '../sandbox.ts'
import { BALANCE_ANNOTATION } from '../../../../src/model/balance.ts'
import { CONNECT_RETRY_ANNOTATION } from '../../../../src/model/connect-retry.ts'
import { flushCommands } from '../../../../src/ui/commands.ts'
import { runIn } from './run-in.ts'
import { findAddress } from './find-address.ts'
import type { Action } from '../../../../src/ui/protocol.ts'
import { AskedWrongly } from '../../../../src/ui/source.ts'

type Done = Exclude<Action, { action: 'load' | 'load-end' | 'plant' }>

const KNOWN_MS = 5000
const KNOWN_POLL_MS = 10

export class SandboxActions {
  readonly #sandbox: Sandbox

  constructor(sandbox: Sandbox) {
    this.#sandbox = sandbox
  }

  /** Resolves with a sentence on what was done. Rejects with what keeps it from being done. */
  async do(action: Done): Promise<string> {
    const { registry } = this.#sandbox
    switch (action.action) {
      case 'scale': {
        const { namespace, deployment: name, replicas } = action
        const found = registry.modify(deployments, { namespace, name }, ({ spec }) => (spec.replicas = replicas))
        mustBeThere(found, `Deployment ${namespace}/${name}`)
        return `Deployment ${namespace}/${name} is to have ${replicas} pods`
      }
      case 'fail': {
        const { namespace, pod: name, how } = action
        const found = registry.modify(pods, { namespace, name }, ({ metadata }) => {
          const { [failAnnotation]: _, ...others } = metadata.annotations ?? {}
          metadata.annotations = how === 'none' ? others : { ...others, [failAnnotation]: how }
        })
        mustBeThere(found, `Pod ${namespace}/${name}`)
        return how === 'none' ? `Pod ${name} is well again` : `Pod ${name} is to ${how}`
      }
      case 'delete-pod': {
        const { namespace, pod: name } = action
        registry.delete(pods, { namespace, name })
        return `Pod ${name} is going`
      }
      case 'policy': {
        const { namespace, service: name, field, value } = action
        const found = registry.modify(services, { namespace, name }, ({ spec }) => (spec[field] = value))
        mustBeThere(found, `Service ${namespace}/${name}`)
        return `Service ${name} has ${field} ${value}`
      }
      case 'affinity': {
        const { namespace, service: name, value } = action
        const found = registry.modify(services, { namespace, name }, ({ spec }) => {
          spec.sessionAffinity = value
          if (value === 'None') delete spec.sessionAffinityConfig
        })
        mustBeThere(found, `Service ${namespace}/${name}`)
        return `Service ${name} has sessionAffinity ${value}`
      }
      case 'connect-retry': {
        const { namespace, service: name, value } = action
        const found = registry.modify(services, { namespace, name }, ({ metadata }) => {
          const { [CONNECT_RETRY_ANNOTATION]: _, ...others } = metadata.annotations ?? {}
          metadata.annotations = value === 'off' ? others : { ...others, [CONNECT_RETRY_ANNOTATION]: value }
        })
        mustBeThere(found, `Service ${namespace}/${name}`)
        if (value === 'on') await this.#allKnowRetry(`${namespace}/${name}`)
        return value === 'on'
          ? `Clients of Service ${name} whose pod does not answer get another`
          : `Service ${name} has no connect-retry of its own`
      }
      case 'balance': {
        const { namespace, service: name, value } = action
        const found = registry.modify(services, { namespace, name }, ({ metadata }) => {
          const { [BALANCE_ANNOTATION]: _, ...others } = metadata.annotations ?? {}
          metadata.annotations = value === 'random' ? others : { ...others, [BALANCE_ANNOTATION]: value }
        })
        mustBeThere(found, `Service ${namespace}/${name}`)
        return `Service ${name} has balance ${value}`
      }
      case 'find-address':
        return findAddress(this.#sandbox, action.address)
      case 'flush': {
        const { netns } = this.#node(action.node)
        for (const line of flushCommands(this.#sandbox.modeOf(action.node))) await runIn(netns, line.split(' '))
        return `The rules of ${action.node} are gone`
      }
      case 'kill-proxy': {
        this.#node(action.node)
        const pid = this.#sandbox.proxyOf(action.node)?.pid
        if (pid === undefined) throw new Error(`Cannot kill the proxy of ${action.node}: it does not run at the moment`)
        process.kill(pid, 'SIGKILL')
        return `The proxy of ${action.node}, process ${pid}, is killed`
      }
      case 'mode':
        await this.#sandbox.setMode(action.node, action.mode)
        return `The proxy of ${action.node} runs in mode ${action.mode}`
      case 'api-server-away':
        this.#sandbox.setApiServerAway(true)
        return 'No node reaches the API server'
      case 'api-server-back':
        this.#sandbox.setApiServerAway(false)
        return 'The nodes reach the API server'
    }
  }

  /** What is done next may be to a pod of it: then it has to be in force. A proxy that does not answer is not waited for. */
  async #allKnowRetry(service: string): Promise<void> {
    const knows = async (node: string) => {
      const asked = { socket: this.#sandbox.proxySocket(node), query: { service, only: 'objects' } }
      const { families } = await ask<StateAnswer>('state', asked)
      return families.every(({ services: known, sync }) => {
        const isKnown = known.every(({ annotations }) => annotations?.[CONNECT_RETRY_ANNOTATION] === 'on')
        return isKnown && sync.waitingSinceMs === undefined
      })
    }
    const endMs = performance.now() + KNOWN_MS
    for (const { plan } of this.#sandbox.network.nodes) {
      while (performance.now() < endMs && !(await knows(plan.name).catch(() => true))) await sleep(KNOWN_POLL_MS)
    }
  }

  #node(name: string): Sandbox['network']['nodes'][number] {
    const { nodes } = this.#sandbox.network
    const found = nodes.find(({ plan }) => plan.name === name)
    if (found !== undefined) return found
    throw new AskedWrongly(
      `Cannot find node ${JSON.stringify(name)}: there are ${nodes.map(({ plan }) => plan.name).join(', ')}`,
    )
  }
}

function mustBeThere(found: unknown, what: string): void {
  if (found === undefined) throw new AskedWrongly(`There is no ${what}`)
}
