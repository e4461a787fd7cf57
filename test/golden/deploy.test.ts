// The manifests of deploy/ say what the API knows, and configure the program as it wants to be configured.

import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { modeNames, modes } from '../../src/modes/all.ts'
import { loadConfiguration } from '../../src/config/load.ts'
import { endpointSlices } from '../../src/kube/objects/endpoint-slice.ts'
import { nodes } from '../../src/kube/objects/node.ts'
import { serviceCidrs } from '../../src/kube/objects/service-cidr.ts'
import { services } from '../../src/kube/objects/service.ts'
import type { JsonObject } from '../../src/sandbox/apiserver/json.ts'
import { decodeObject } from '../../src/sandbox/apiserver/schema/decode.ts'
import { messageNamed } from '../../src/sandbox/apiserver/schema/schema.ts'

interface Rule {
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

function read(name: string): string {
  return readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')
}

function objects(name: string): Record<string, unknown>[] {
  return parseAllDocuments(read(name)).map((document) => document.toJS() as Record<string, unknown>)
}

/** The fields that the API does not know. Throws where a value has the wrong type. */
function unknownFields(message: string, object: unknown): readonly string[] {
  return decodeObject(messageNamed(message), object as JsonObject).unknown
}

describe('deploy/', () => {
  it('has a DaemonSet of which the API knows every field of the pods', () => {
    const [daemonSet] = objects('daemon-set.yaml') as [{ spec: { template: object } }]
    expect(unknownFields('core.PodTemplateSpec', daemonSet.spec.template)).toEqual([])
    expect(unknownFields('core.PodTemplateSpec', { spec: { hostnetwork: true } })).toEqual(['spec.hostnetwork'])
  })

  it('lets the ServiceAccount read what the program lists and watches', () => {
    const [account] = objects('service-account.yaml')
    expect(unknownFields('core.ServiceAccount', account)).toEqual([])
    const [role, binding] = objects('rbac.yaml') as unknown as [{ rules: Rule[] }, object]
    expect(binding).toMatchObject({ subjects: [{ kind: 'ServiceAccount', name: 'kube-proxy-ts' }] })
    const readable = role.rules.filter(({ verbs }) => verbs.includes('list') && verbs.includes('watch'))
    const resources = readable.flatMap((rule) => rule.resources)
    for (const name of [services, endpointSlices, nodes, serviceCidrs].map((resource) => resource.name)) {
      expect(resources).toContain(name)
    }
  })

  it('has a configuration that the program accepts, and a kubeconfig where it says', () => {
    const [configMap] = objects('config-map.yaml') as [{ data: Record<string, string> }]
    expect(unknownFields('core.ConfigMap', configMap)).toEqual([])
    const override = (config: Parameters<NonNullable<Parameters<typeof loadConfiguration>[1]['override']>>[0]) => config
    const { loaded } = loadConfiguration(configMap.data['config.conf']!, { modes, override })
    expect(modeNames).toContain(loaded.config.mode)
    expect(configMap.data).toHaveProperty([basename(loaded.config.clientConnection.kubeconfig)])
  })

  it('names files that exist', () => {
    const [kustomization] = objects('kustomization.yaml') as [{ resources: string[] }]
    for (const file of kustomization.resources) expect(read(file)).not.toBe('')
  })
})
