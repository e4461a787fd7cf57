// Everything under the server's address that is no object: discovery, OpenAPI, the version, and whether it is well.

import { apiGroup, apiGroupList, apiResourceList, apiVersions } from './discovery.ts'
import { encodeOpenApi } from './openapi.ts'
import { serverVersion } from './server-version.ts'
import type { Answer } from './exchange.ts'
import type { Buffer } from 'node:buffer'

export function pageAt(path: string): Answer | undefined {
  const parts = path.split('/').filter((part) => part !== '')
  switch (parts[0]) {
    case 'healthz':
    case 'livez':
    case 'readyz':
      return { code: 200, type: 'text/plain; charset=utf-8', body: 'ok' }
    case 'version':
      return json(serverVersion)
    case 'openapi':
      return openApiPage(parts.slice(1))
    case 'api':
    case 'apis':
      return discoveryPage(parts[0], parts.slice(1))
    default:
      return undefined
  }
}

function json(value: object | undefined): Answer | undefined {
  return value === undefined ? undefined : { code: 200, type: 'application/json', body: `${JSON.stringify(value)}\n` }
}

function discoveryPage(root: 'api' | 'apis', parts: readonly string[]): Answer | undefined {
  const [first, second] = parts
  if (first === undefined) return json(root === 'api' ? apiVersions() : apiGroupList())
  if (root === 'api') return parts.length === 1 ? json(apiResourceList('', first)) : undefined
  if (second === undefined) return json(apiGroup(first))
  return parts.length === 2 ? json(apiResourceList(first, second)) : undefined
}

let openApiDocument: Buffer | undefined

/** Every kubectl reads version 2, in protobuf. */
function openApiPage([version, ...rest]: readonly string[]): Answer | undefined {
  if (version !== 'v2' || rest.length > 0) return undefined
  openApiDocument ??= encodeOpenApi()
  const type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
  return { code: 200, type, body: openApiDocument }
}
