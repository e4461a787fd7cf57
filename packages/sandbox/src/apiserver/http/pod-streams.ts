// logs, exec, attach and port-forward: what needs a running pod. The API server has none; the sandbox, which runs them, says
// what it offers.

import { ApiError } from '../api-error.ts'
import type { Duplex } from 'node:stream'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Pod } from '../objects/pod.ts'

export interface PodStreamRequest {
  readonly pod: Pod
  readonly query: URLSearchParams
  readonly incoming: IncomingMessage
}

/** Handlers for what is offered. An exec or portforward comes with a connection to be upgraded. */
export interface PodStreams {
  log?(request: PodStreamRequest & { readonly response: ServerResponse }): void | Promise<void>
  exec?(request: PodStreamRequest & { readonly socket: Duplex; readonly head: Buffer }): void | Promise<void>
  portforward?(request: PodStreamRequest & { readonly socket: Duplex; readonly head: Buffer }): void | Promise<void>
}

export type StreamName = keyof PodStreams | 'attach'

const streamNames: ReadonlySet<string> = new Set<StreamName>(['log', 'exec', 'attach', 'portforward'])

export function isStream(subresource: string): subresource is StreamName {
  return streamNames.has(subresource)
}

const insteadOf: Readonly<Record<StreamName, string>> = {
  log: 'its pods do not run',
  exec: 'its pods do not run',
  attach: "a pod's server reads no input; `kubectl logs -f` shows what it does",
  portforward: 'its pods do not run',
}

export function notOffered(stream: StreamName): ApiError {
  const message = `the sandbox does not offer ${stream === 'log' ? 'logs' : stream}: ${insteadOf[stream]}`
  return new ApiError(501, 'NotImplemented', message)
}
