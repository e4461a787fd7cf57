// Requests for single objects, as JSON.

import { Buffer } from 'node:buffer'
import type { ApiRequest, UpgradingClient } from '../kube/api-client.ts'
import { ApiError } from '../kube/api-error.ts'
import { readBody } from '../kube/read-body.ts'
import { systemClock } from '../lib/clock.ts'

const IDLE_TIMEOUT_MS = 30_000

export interface Metadata {
  readonly name: string
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly deletionTimestamp?: string
}

export async function askApi<T>(client: UpgradingClient, request: ApiRequest): Promise<T> {
  const response = await client.request({ accept: 'application/json', ...request })
  const chunks: Buffer[] = []
  await readBody(response, {
    clock: systemClock,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    onChunk: (chunk) => chunks.push(chunk),
  })
  return JSON.parse(Buffer.concat(chunks).toString()) as T
}

export function mergePatch(client: UpgradingClient, path: string, body: unknown): Promise<unknown> {
  return askApi(client, { method: 'PATCH', path, body, contentType: 'application/merge-patch+json' })
}

/** Undefined when there is none. */
export async function findObject<T>(client: UpgradingClient, path: string): Promise<T | undefined> {
  try {
    return await askApi<T>(client, { path })
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}
