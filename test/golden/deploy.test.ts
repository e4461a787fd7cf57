// The manifests of deploy/ say what the API knows, and configure the program as it wants to be configured.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseFlags } from '../../src/cli/parse-flags.ts'
import { endpointSlices } from '../../src/kube/objects/endpoint-slice.ts'
import { nodes } from '../../src/kube/objects/node.ts'
import { serviceCidrs } from '../../src/kube/objects/service-cidr.ts'
import { services } from '../../src/kube/objects/service.ts'
import { modeNames } from '../../src/modes/all.ts'
import type { JsonObject } from '../../packages/sandbox/src/apiserver/json.ts'
import { decodeObject } from '../../packages/sandbox/src/apiserver/schema/decode.ts'
import { apiVersionOf } from '../../packages/sandbox/src/apiserver/resources/resource.ts'
import { resources } from '../../packages/sandbox/src/apiserver/resources/table.ts'
import { messageNamed } from '../../packages/sandbox/src/apiserver/schema/schema.ts'
import { renderKustomization, type Manifest } from '../support/kustomize.ts'

interface Rule {
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
}

interface Container {
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly env: readonly { name: string; valueFrom: { configMapKeyRef?: { name: string; key: string } } }[]
  readonly securityContext: object
}

interface PodSpec {
  readonly containers: readonly [Container]
  readonly initContainers: readonly [Container]
  readonly nodeSelector: Readonly<Record<string, string>>
}

interface Kustomization {
  readonly resources?: readonly string[]
  readonly components?: readonly string[]
  readonly configMapGenerator?: readonly { name: string; behavior?: string; literals: readonly string[] }[]
  readonly patches?: readonly { patch: string }[]
}

const deploy = join(import.meta.dirname, '../../deploy')

function read(name: string): string {
  return readFileSync(join(deploy, name), 'utf8')
}

function objects<T = Record<string, unknown>>(name: string): T[] {
  return parseAllDocuments(read(name)).map((document) => document.toJS() as T)
}

function kustomization(folder: string): Kustomization {
  return objects<Kustomization>(`${folder}/kustomization.yaml`)[0]!
}

/** `mode=nftables` as a pair. */
function settings(folder: string): Record<string, string> {
  const literals = kustomization(folder).configMapGenerator?.flatMap((each) => each.literals) ?? []
  return Object.fromEntries(literals.map((literal) => [literal.replace(/=.*/, ''), literal.replace(/^[^=]*=/, '')]))
}

function messageOf({ apiVersion, kind }: Manifest): string {
  const resource = resources.find((each) => apiVersionOf(each) === apiVersion && each.kind === kind)
  if (resource === undefined) throw new Error(`The API has no ${kind} of ${apiVersion}`)
  return resource.message
}

/** The fields that the API does not know. Throws where a value has the wrong type. */
function unknownFields(message: string, object: unknown): readonly string[] {
  return decodeObject(messageNamed(message), object as JsonObject).unknown
}

const [daemonSet] = objects<{ spec: { template: { spec: PodSpec } } }>('base/daemon-set.yaml')
const pod = daemonSet!.spec.template.spec
const everyContainer = [...pod.initContainers, ...pod.containers]

describe('deploy/', () => {
  it('makes objects of which the API knows every field, with every component', () => {
    const components = readdirSync(join(deploy, 'components')).map((name) => join(deploy, 'components', name))
    const used = new Set<string>()
    for (const mode of modeNames) {
      for (const more of [[], components]) {
        for (const object of renderKustomization(join(deploy, 'overlays', mode), more)) {
          used.add(object.kind)
          // Of the operator of Prometheus, whose kinds are no part of Kubernetes.
          if (object.apiVersion === 'monitoring.coreos.com/v1') continue
          expect(unknownFields(messageOf(object), object)).toEqual([])
        }
      }
    }
    const operators = ['PodMonitor', 'PrometheusRule']
    const rights = ['ClusterRole', 'ClusterRoleBinding', 'ServiceAccount']
    expect([...used].sort()).toEqual([...operators, ...rights, 'ConfigMap', 'DaemonSet', 'Service'].sort())
    expect(unknownFields('apps.DaemonSet', { spec: { template: { spec: { hostnetwork: true } } } })).toEqual([
      'spec.template.spec.hostnetwork',
    ])
  })

  it('takes the settings of a kubeadm cluster as they are, beside every other component', () => {
    for (const others of [[], ['choose-at-connect', 'iptables-legacy', 'metrics']]) {
      const names = [...others, 'kubeadm', ...(others.length > 0 ? ['every-node'] : [])]
      const folders = names.map((name) => join(deploy, 'components', name))
      const objects = renderKustomization(join(deploy, 'overlays/iptables'), folders)
      const { spec } = objects.find(({ kind }) => kind === 'DaemonSet') as unknown as typeof daemonSet & object
      const { initContainers, containers } = spec.template.spec
      expect(initContainers[0].args).toEqual(['--init-only', '--config=/var/lib/kube-proxy/config.conf'])
      expect(initContainers[0].env).toEqual([])
      expect(containers[0].args.slice(0, 2)).toEqual([
        '--config=/var/lib/kube-proxy/config.conf',
        '--hostname-override=$(NODE_NAME)',
      ])
      expect(containers[0].args.includes('--choose-at-connect=pods')).toBe(others.length > 0)
      expect(containers[0].env.map(({ name }) => name)).toEqual(['NODE_NAME'])
    }
  })

  it("patches the container of kubeadm's own DaemonSet", () => {
    const [patch] = objects<{ metadata: object; spec: { template: { spec: { containers: object[] } } } }>(
      'kubeadm-patches/kubeproxydaemonset+strategic.yaml',
    )
    expect(unknownFields('apps.DaemonSet', patch)).toEqual([])
    expect(patch).toMatchObject({ metadata: { name: 'kube-proxy', namespace: 'kube-system' } })
    expect(patch!.spec.template.spec.containers).toMatchObject([{ name: 'kube-proxy' }])
  })

  it('lets the ServiceAccount read what the program lists and watches', () => {
    const [role, binding] = objects('base/rbac.yaml') as unknown as [{ rules: Rule[] }, object]
    expect(binding).toMatchObject({ subjects: [{ kind: 'ServiceAccount', name: 'kube-proxy-ts' }] })
    const readable = role.rules.filter(({ verbs }) => verbs.includes('list') && verbs.includes('watch'))
    const resources = readable.flatMap((rule) => rule.resources)
    for (const name of [services, endpointSlices, nodes, serviceCidrs].map((resource) => resource.name)) {
      expect(resources).toContain(name)
    }
  })

  it('gives all rights to what ends, and one to what runs', () => {
    expect(pod.initContainers[0].args).toContain('--init-only')
    expect(pod.initContainers[0].securityContext).toEqual({ privileged: true, readOnlyRootFilesystem: true })
    expect(pod.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
    })
    expect(pod).toMatchObject({ securityContext: { seccompProfile: { type: 'RuntimeDefault' } } })
  })

  it('comes to no node that has not its label', () => {
    expect(pod.nodeSelector).toEqual({ 'kubernetes.io/os': 'linux', 'kube-proxy-ts': 'yes' })
  })

  it('passes flags that the program knows, with settings that are there', () => {
    for (const { args, env, command } of everyContainer) {
      expect(command).toEqual(['/usr/local/bin/kube-proxy'])
      expect(parseFlags(args).errors).toEqual([])
      const names = env.map(({ name }) => name)
      for (const [, used] of args.join(' ').matchAll(/\$\((\w+)\)/g)) expect(names).toContain(used)
      for (const { valueFrom } of env) {
        if (valueFrom.configMapKeyRef === undefined) continue
        expect(valueFrom.configMapKeyRef.name).toBe('kube-proxy-ts')
        expect(Object.keys(settings('base'))).toContain(valueFrom.configMapKeyRef.key)
      }
    }
  })

  it('has an overlay for each mode, which changes settings that are there', () => {
    expect(readdirSync(join(deploy, 'overlays')).sort()).toEqual([...modeNames].sort())
    for (const mode of modeNames) {
      expect(settings(`overlays/${mode}`)).toEqual({ mode })
      expect(kustomization(`overlays/${mode}`).configMapGenerator).toMatchObject([
        { name: 'kube-proxy-ts', behavior: 'merge' },
      ])
    }
    expect(modeNames).toContain(settings('base')['mode'])
  })

  it('names files and folders that exist', () => {
    const folders = [
      'base',
      ...['overlays', 'components'].flatMap((kind) => readdirSync(join(deploy, kind)).map((each) => `${kind}/${each}`)),
    ]
    for (const folder of folders) {
      const { resources = [], components = [] } = kustomization(folder)
      for (const name of [...resources, ...components]) expect(existsSync(join(deploy, folder, name)), name).toBe(true)
    }
    for (const [, name] of read('README.md').matchAll(/`((?:base|overlays|components)\/[a-z-.]+)`/g)) {
      expect(existsSync(join(deploy, name!)), name).toBe(true)
    }
  })

  it('has components that change what is there', () => {
    for (const name of readdirSync(join(deploy, 'components'))) {
      for (const { patch } of kustomization(`components/${name}`).patches ?? []) {
        const operations = parseAllDocuments(patch)[0]!.toJS() as { op: string; path: string }[]
        for (const { op, path } of operations) {
          const parts = path
            .split('/')
            .slice(1)
            .map((part) => part.replaceAll('~1', '/'))
          const keys = op === 'add' ? parts.slice(0, -1) : parts
          const found = keys.reduce<unknown>(
            (value, key) => (value as Record<string, unknown> | undefined)?.[key],
            daemonSet,
          )
          expect(found, `${name}: ${path}`).toBeDefined()
        }
      }
    }
  })
})
