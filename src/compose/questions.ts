// The questions that a running proxy answers at its control socket. See serve/control/questions.ts.

import { allowArguments, argument, QuestionError, type Question } from '../serve/control/questions.ts'
import { describePort, type PortState } from '../serve/control/port-state.ts'
import type { EjectedBackend, FamilyState, StateToSend } from '../serve/control/state.ts'
import { joinHostPort } from '../lib/ip.ts'
import type { Suspect } from '../retry/suspects.ts'
import type { EndpointSlice, Service } from '../kube/types.ts'
import type { FamilyPipeline } from '../reconcile/family-pipeline.ts'

export interface AskedProxy {
  readonly pipelines: readonly FamilyPipeline[]
  /** All of the state but what is of one family. */
  readonly about: () => Omit<StateToSend, 'families'>
}

export function proxyQuestions(proxy: AskedProxy): readonly Question[] {
  return [
    {
      name: 'state',
      what: 'configuration, node, objects and decisions; service=NAMESPACE/NAME for those of one service, only=objects without decisions, only=status without either',
      answer(query): StateToSend {
        allowArguments(query, 'service', 'only')
        const service = argument(query, 'service')
        if (service !== undefined && !/^[^/]+\/[^/]+$/.test(service)) {
          throw new QuestionError(`Cannot find service ${JSON.stringify(service)}: must be NAMESPACE/NAME`)
        }
        const only = argument(query, 'only')
        if (only !== undefined && only !== 'objects' && only !== 'status') {
          throw new QuestionError(`Cannot answer with only ${JSON.stringify(only)}: must be objects or status`)
        }
        const families = proxy.pipelines.map((pipeline) => {
          if (only === 'status') return { ...syncOf(pipeline), services: [], slices: [], ports: [] }
          const { ports, ...objects } = decisionsOf(pipeline, service)
          return { ...syncOf(pipeline), ...objects, ports: only === undefined ? ports : [] }
        })
        return { ...proxy.about(), families }
      },
    },
  ]
}

export function describeEjected(suspects: readonly Suspect[]): EjectedBackend[] {
  return suspects
    .filter(({ state }) => state === 'ejected')
    .map(({ ip, port, reason, sinceMs, nextProbeMs }) => ({
      backend: joinHostPort(ip, port),
      protocol: 'TCP',
      reason,
      sinceMs,
      untilMs: nextProbeMs,
    }))
}

function syncOf(pipeline: FamilyPipeline): Pick<FamilyState, 'family' | 'node' | 'sync' | 'drift' | 'rungs'> {
  const { node, syncState, driftState, model } = pipeline
  const rungs = Object.fromEntries(Array.from(model.rungs, ([name, each]) => [name, Object.fromEntries(each)]))
  return { family: node.family, node, sync: syncState, drift: driftState, rungs }
}

function decisionsOf({ model }: FamilyPipeline, only: string | undefined): ReturnType<typeof narrow> {
  const { services, slices } = model.objects()
  const all = { services, slices, ports: each([...model.views()], describePort) }
  return only === undefined ? all : narrow(all, only)
}

interface Decisions {
  readonly services: Iterable<Service>
  readonly slices: Iterable<EndpointSlice>
  readonly ports: Iterable<PortState>
}

function narrow({ services, slices, ports }: Decisions, key: string): Decisions {
  return {
    services: where(services, ({ namespace, name }) => `${namespace}/${name}` === key),
    slices: where(slices, ({ namespace, serviceName }) => `${namespace}/${serviceName}` === key),
    ports: where(ports, ({ namespace, service }) => `${namespace}/${service}` === key),
  }
}

function* where<T>(values: Iterable<T>, isWanted: (value: T) => boolean): Generator<T> {
  for (const value of values) if (isWanted(value)) yield value
}

function* each<T, U>(values: Iterable<T>, describe: (value: T) => U): Generator<U> {
  for (const value of values) yield describe(value)
}
