// /openapi/v3: one document for each version of each group.

import { allDefinitions, definitionName, kindExtension, objectPath, writeParameters } from './openapi-definitions.ts'
import { resources } from '../resources/table.ts'
import type { Definition } from './openapi-definitions.ts'
import type { Resource } from '../resources/resource.ts'

/** `api/v1`, `apis/apps/v1` */
function documentPath({ group, version }: Resource): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`
}

/** Where the documents are. kubectl keeps them under the hash, so it changes with what is in them. */
export function openApiIndex(hash: string): object {
  const paths = [...new Set(resources.map(documentPath))]
  const entries = paths.map((path) => [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }])
  return { paths: Object.fromEntries(entries) as object }
}

/** The document at `api/v1`, or undefined when there is none. */
export function openApiDocument(path: string): object | undefined {
  const kinds = resources.filter((resource) => documentPath(resource) === path)
  if (kinds.length === 0) return undefined
  const definitions = allDefinitions()
  const names = reachable(
    kinds.map(({ message }) => definitionName(message)),
    definitions,
  )
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(kinds.map((kind) => [objectPath(kind), pathItem(kind)])) as object,
    components: {
      schemas: Object.fromEntries([...names].map((name) => [name, formatDefinition(definitions.get(name)!)])) as object,
    },
  }
}

function reachable(roots: readonly string[], definitions: ReadonlyMap<string, Definition>): Set<string> {
  const found = new Set<string>()
  const visit = (name: string): void => {
    if (found.has(name)) return
    found.add(name)
    for (const property of Object.values(definitions.get(name)?.properties ?? {})) visitDefinition(property)
  }
  const visitDefinition = ({ ref, items, additionalProperties }: Definition): void => {
    if (ref !== undefined) visit(ref)
    if (items !== undefined) visitDefinition(items)
    if (additionalProperties !== undefined) visitDefinition(additionalProperties)
  }
  roots.forEach(visit)
  return found
}

function pathItem(kind: Resource): object {
  const [gvk] = kindExtension([kind])['x-kubernetes-group-version-kind'] as object[]
  const schema = { $ref: `#/components/schemas/${definitionName(kind.message)}` }
  const responses = { '200': { description: 'OK', content: { 'application/json': { schema } } } }
  const operation = { responses, 'x-kubernetes-group-version-kind': gvk }
  const parameters = writeParameters.map((name) => ({ name, in: 'query', schema: { type: 'string' } }))
  return {
    get: { ...operation, 'x-kubernetes-action': 'get' },
    put: { ...operation, parameters, 'x-kubernetes-action': 'put' },
    patch: { ...operation, parameters, 'x-kubernetes-action': 'patch' },
  }
}

function formatDefinition({ ref, items, additionalProperties, properties, extensions, ...rest }: Definition): object {
  return {
    ...rest,
    ...extensions,
    // A reference hides what stands beside it, so it gets an envelope.
    ...(ref === undefined ? {} : { allOf: [{ $ref: `#/components/schemas/${ref}` }] }),
    ...(items === undefined ? {} : { items: formatDefinition(items) }),
    ...(additionalProperties === undefined ? {} : { additionalProperties: formatDefinition(additionalProperties) }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, one]) => [name, formatDefinition(one)]),
          ) as object,
        }),
  }
}
