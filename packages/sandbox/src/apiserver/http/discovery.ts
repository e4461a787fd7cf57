// What the server offers, for clients that ask before they speak.

import { apiVersionOf } from '../resources/resource.ts'
import { resources } from '../resources/table.ts'
import type { Resource } from '../resources/resource.ts'

/** The groups besides the unnamed one, in the order of the table. */
const groups = [...new Set(resources.map(({ group }) => group))].filter((group) => group !== '')

function versionsOf(group: string): string[] {
  return [...new Set(resources.filter((one) => one.group === group).map(({ version }) => version))]
}

export function apiVersions(): object {
  return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] }
}

export function apiGroupList(): object {
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupEntry) }
}

export function apiGroup(group: string): object | undefined {
  return groups.includes(group) ? { kind: 'APIGroup', apiVersion: 'v1', ...groupEntry(group) } : undefined
}

function groupEntry(group: string) {
  const versions = versionsOf(group).map((version) => ({ groupVersion: `${group}/${version}`, version }))
  return { name: group, versions, preferredVersion: versions[0] }
}

export function apiResourceList(group: string, version: string): object | undefined {
  const offered = resources.filter((resource) => resource.group === group && resource.version === version)
  if (offered.length === 0) return undefined
  const head = group === '' ? { kind: 'APIResourceList' } : { kind: 'APIResourceList', apiVersion: 'v1' }
  return { ...head, groupVersion: apiVersionOf({ group, version }), resources: offered.flatMap(resourceEntries) }
}

function resourceEntries(resource: Resource): object[] {
  const { plural, singular, namespaced, kind, verbs, shortNames, categories, subresources } = resource
  return [
    {
      name: plural,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames.length === 0 ? {} : { shortNames }),
      ...(categories.length === 0 ? {} : { categories }),
    },
    ...subresources.map((subresource) => ({
      name: `${plural}/${subresource.name}`,
      singularName: '',
      namespaced,
      ...(subresource.as === undefined ? {} : foreignGroup(subresource.as)),
      kind: subresource.as?.kind ?? kind,
      verbs: subresource.verbs,
    })),
  ]
}

function foreignGroup({ group, version }: { group: string; version: string }): object {
  return group === '' ? {} : { group, version }
}
