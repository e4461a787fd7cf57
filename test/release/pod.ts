// The pod of the DaemonSet in deploy/, and what kubelet makes of it: containers with the rights, settings and files that it names.

import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkout } from '../support/checkout.ts'
import { renderKustomization, type Manifest } from '../support/kustomize.ts'
import type { ContainerOptions, Mount } from './containerd.ts'

export interface PodOptions {
  readonly mode: string
  /** Of deploy/components. */
  readonly components?: readonly string[]
  readonly nodeName: string
  /** Of the ConfigMap. */
  readonly settings: Readonly<Record<string, string>>
  readonly network: string
  /** A folder for files of the node: the lock of iptables, the service account. */
  readonly folder: string
}

interface Container {
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly env?: readonly { readonly name: string; readonly valueFrom: ValueFrom }[]
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[]
  readonly securityContext: SecurityContext
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
}

interface ValueFrom {
  readonly configMapKeyRef?: { readonly name: string; readonly key: string }
  readonly fieldRef?: { readonly fieldPath: string }
}

interface SecurityContext {
  readonly privileged?: boolean
  readonly allowPrivilegeEscalation?: boolean
  readonly readOnlyRootFilesystem?: boolean
  readonly capabilities?: { readonly add: readonly string[]; readonly drop: readonly string[] }
}

export interface Probe {
  readonly httpGet: { readonly host: string; readonly path: string; readonly port: number }
}

interface PodSpec {
  readonly containers: readonly [Container]
  readonly initContainers: readonly [Container]
  readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[]
  readonly securityContext: { readonly seccompProfile: { readonly type: string } }
}

export class Pod {
  readonly #options: PodOptions
  readonly #spec: PodSpec
  readonly #configMap: Manifest
  /** Flags for the containers, beside those of the manifest. */
  readonly #more: readonly string[]

  constructor(options: PodOptions, more: readonly string[]) {
    this.#options = options
    this.#more = more
    const components = (options.components ?? []).map((name) => join(checkout, 'deploy/components', name))
    const objects = renderKustomization(join(checkout, 'deploy/overlays', options.mode), components)
    const find = (kind: string) => objects.find((object) => object.kind === kind)!
    this.#spec = (find('DaemonSet')['spec'] as { template: { spec: PodSpec } }).template.spec
    this.#configMap = find('ConfigMap')
    writeFileSync(join(options.folder, 'xtables-lock'), '')
  }

  get rights(): readonly string[] {
    return this.#spec.containers[0].securityContext.capabilities!.add
  }

  get probes(): { readonly live: Probe; readonly ready: Probe } {
    const { livenessProbe, readinessProbe } = this.#spec.containers[0]
    return { live: livenessProbe!, ready: readinessProbe! }
  }

  init(): ContainerOptions {
    return this.#container(this.#spec.initContainers[0])
  }

  main(): ContainerOptions {
    return this.#container(this.#spec.containers[0])
  }

  /** With its settings from a file, as in the DaemonSet of kubeadm. */
  withConfiguration(folder: string): ContainerOptions {
    const main = this.main()
    const destination = '/var/lib/kube-proxy'
    const args = [`--config=${destination}/config.conf`, `--hostname-override=${this.#options.nodeName}`]
    const mounts = [...main.mounts, { source: folder, destination, isReadOnly: true }]
    return { ...main, command: [main.command[0]!, ...args], mounts }
  }

  #container(container: Container): ContainerOptions {
    const { privileged = false, capabilities, ...context } = container.securityContext
    if (!privileged && capabilities?.drop.join() !== 'ALL')
      throw new Error('Cannot tell the rights: not all are dropped')
    const env = Object.fromEntries((container.env ?? []).map(({ name, valueFrom }) => [name, this.#value(valueFrom)]))
    const args = container.args.map((arg) => arg.replace(/\$\((\w+)\)/g, (_, name: string) => env[name]!))
    const account = '/var/run/secrets/kubernetes.io/serviceaccount'
    return {
      command: [...container.command, ...args, ...this.#more],
      env,
      network: this.#options.network,
      mounts: [
        ...container.volumeMounts.map((mount) => this.#mount(mount)),
        { source: join(this.#options.folder, 'account'), destination: account, isReadOnly: true },
      ],
      isPrivileged: privileged,
      capabilities: capabilities?.add ?? [],
      isRootReadOnly: context.readOnlyRootFilesystem === true,
      isSeccompOn: this.#spec.securityContext.seccompProfile.type === 'RuntimeDefault',
      mayGainPrivileges: context.allowPrivilegeEscalation !== false,
    }
  }

  #value({ configMapKeyRef, fieldRef }: ValueFrom): string {
    if (fieldRef?.fieldPath === 'spec.nodeName') return this.#options.nodeName
    const { metadata, data } = this.#configMap
    if (configMapKeyRef?.name !== metadata.name)
      throw new Error('Cannot tell a value: it is of no ConfigMap that is here')
    return this.#options.settings[configMapKeyRef.key] ?? (data as Record<string, string>)[configMapKeyRef.key]!
  }

  #mount({ name, mountPath, readOnly = false }: Container['volumeMounts'][number]): Mount {
    const { hostPath } = this.#spec.volumes.find((volume) => volume.name === name)!
    const own = join(this.#options.folder, name)
    // An emptyDir.
    if (hostPath === undefined) mkdirSync(own, { recursive: true })
    // The machine's own lock stays out of it.
    const source = hostPath === undefined || hostPath.path === '/run/xtables.lock' ? own : hostPath.path
    return { source, destination: mountPath, isReadOnly: readOnly }
  }
}

/** What kubelet mounts for a service account. */
export function writeAccount(folder: string, token: string, authority: string): void {
  mkdirSync(join(folder, 'account'))
  writeFileSync(join(folder, 'account', 'token'), token)
  writeFileSync(join(folder, 'account', 'ca.crt'), authority)
}

/** The files of a ConfigMap, as kubelet changes them: a new folder, and a link that is moved onto the old one. */
export class MountedConfigMap {
  readonly folder: string
  #version = 0

  constructor(folder: string) {
    this.folder = folder
    mkdirSync(folder)
  }

  write(name: string, text: string): void {
    const before = `..version-${this.#version++}`
    const version = `..version-${this.#version}`
    mkdirSync(join(this.folder, version))
    writeFileSync(join(this.folder, version, name), text)
    symlinkSync(version, join(this.folder, '..data_tmp'))
    renameSync(join(this.folder, '..data_tmp'), join(this.folder, '..data'))
    if (this.#version === 1) symlinkSync(join('..data', name), join(this.folder, name))
    rmSync(join(this.folder, before), { recursive: true, force: true })
  }
}
