// Everything under the server's address that is no object: discovery, OpenAPI, the version, and whether it is well.

import { createHash } from 'node:crypto'
import { aggregatedDiscovery, apiGroup, apiGroupList, apiResourceList, apiVersions } from './discovery.ts'
import { aggregatedVersion } from './negotiate.ts'
import { encodeOpenApiV2 } from './openapi-v2.ts'
import { openApiDocument, openApiIndex } from './openapi-v3.ts'
import { serverVersion } from './server-version.ts'
import type { Answer } from './exchange.ts'
import type { Buffer } from 'node:buffer'

/** The page at a path, or undefined when there is none. */
export function pageAt(path: string, accept: string | undefined): Answer | undefined {
  const parts = path.split('/').filter((part) => part !== '')
  switch (parts[0]) {
    case 'healthz':
    case 'livez':
    case 'readyz':
      return { code: 200, type: 'text/plain; charset=utf-8', body: 'ok' }
    case 'version':
      return json(serverVersion)
    case 'openapi':
      return openApiPage(parts.slice(1), accept)
    case 'api':
    case 'apis':
      return discoveryPage(parts[0], parts.slice(1), accept)
    default:
      return undefined
  }
}

function json(value: object | undefined): Answer | undefined {
  return value === undefined ? undefined : { code: 200, type: 'application/json', body: `${JSON.stringify(value)}\n` }
}

function discoveryPage(root: 'api' | 'apis', parts: readonly string[], accept: string | undefined): Answer | undefined {
  const [first, second] = parts
  if (first === undefined) {
    const version = aggregatedVersion(accept)
    if (version === undefined) return json(root === 'api' ? apiVersions() : apiGroupList())
    const type = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`
    return { code: 200, type, body: `${JSON.stringify(aggregatedDiscovery(root, version))}\n` }
  }
  if (root === 'api') return parts.length === 1 ? json(apiResourceList('', first)) : undefined
  if (second === undefined) return json(apiGroup(first))
  return parts.length === 2 ? json(apiResourceList(first, second)) : undefined
}

let v2Document: Buffer | undefined
const v2Type = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'

function openApiPage(parts: readonly string[], accept: string | undefined): Answer | undefined {
  const [version, ...rest] = parts
  if (version === 'v2' && rest.length === 0) {
    v2Document ??= encodeOpenApiV2()
    return { code: 200, type: v2Type, body: v2Document }
  }
  if (version !== 'v3') return undefined
  if (rest.length === 0) return json(openApiIndex(documentHash()))
  // kubectl offers protobuf too, and takes what it gets.
  void accept
  return json(openApiDocument(rest.join('/')))
}

let hash: string | undefined

function documentHash(): string {
  v2Document ??= encodeOpenApiV2()
  hash ??= createHash('sha256').update(v2Document).digest('hex').toUpperCase()
  return hash
}
