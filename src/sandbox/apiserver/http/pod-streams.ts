// logs, exec, attach and port-forward: what needs a running pod, which the API server has none of. Whoever runs the pods
// can offer them.

import { ApiError } from '../api-error.ts'
import type { Duplex } from 'node:stream'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Pod } from '../objects/pod.ts'

export interface PodStreamRequest {
  readonly pod: Pod
  readonly query: URLSearchParams
  readonly incoming: IncomingMessage
}

/** Handlers for what is offered. An exec, attach or portforward comes with a connection to be upgraded. */
export interface PodStreams {
  log?(request: PodStreamRequest & { readonly response: ServerResponse }): void | Promise<void>
  exec?(request: PodStreamRequest & { readonly socket: Duplex; readonly head: Buffer }): void | Promise<void>
  attach?(request: PodStreamRequest & { readonly socket: Duplex; readonly head: Buffer }): void | Promise<void>
  portforward?(request: PodStreamRequest & { readonly socket: Duplex; readonly head: Buffer }): void | Promise<void>
}

export type StreamName = keyof PodStreams

const streamNames: ReadonlySet<string> = new Set<StreamName>(['log', 'exec', 'attach', 'portforward'])

export function isStream(subresource: string): subresource is StreamName {
  return streamNames.has(subresource)
}

const insteadOf: Readonly<Record<StreamName, string>> = {
  log: 'nothing runs the pods of this API server',
  exec: 'run `kube-proxy sandbox exec POD -- COMMAND` instead',
  attach: 'run `kube-proxy sandbox exec POD -- COMMAND` instead',
  portforward: "the pod's address can be reached from this machine",
}

export function notOffered(stream: StreamName): ApiError {
  const message = `the sandbox does not offer ${stream === 'log' ? 'logs' : stream}: ${insteadOf[stream]}`
  return new ApiError(501, 'NotImplemented', message)
}
