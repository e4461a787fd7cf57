// The image under runc, with the rights of the manifests and nothing else.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { checkout } from '../support/checkout.ts'

interface Manifest {
  readonly Config: string
  readonly Layers: readonly string[]
}

/** An archive of scripts/image: its files, and those of the image. */
export class Image implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'image-'))
  readonly blobs = join(this.#home, 'blobs')
  readonly root = join(this.#home, 'root')
  readonly #bundles: string[] = []

  constructor(archive: string) {
    for (const folder of [this.blobs, this.root]) mkdirSync(folder)
    execFileSync('tar', ['-xf', archive, '-C', this.blobs])
    for (const layer of this.docker.Layers) {
      execFileSync('tar', ['-xpzf', join(this.blobs, layer), '-C', this.root])
    }
    writeFileSync(join(this.#home, 'xtables.lock'), '')
  }

  /** What docker load reads. */
  get docker(): Manifest {
    return (this.json('manifest.json') as [Manifest])[0]
  }

  json(file: string): unknown {
    return JSON.parse(readFileSync(join(this.blobs, file), 'utf8'))
  }

  /** The command that runs the image's program, in the network namespace of whoever runs it. */
  command(args: readonly string[], options: ContainerOptions): string[] {
    const id = `kube-proxy-ts-${process.pid}-${this.#bundles.length}`
    const bundle = join(this.#home, id)
    this.#bundles.push(id)
    mkdirSync(bundle)
    const lock = join(this.#home, 'xtables.lock')
    writeFileSync(join(bundle, 'config.json'), JSON.stringify(this.#configuration(args, lock, options)))
    return ['runc', '--root', join(this.#home, 'runc'), 'run', '--bundle', bundle, id]
  }

  #configuration(args: readonly string[], lock: string, { rights, folders = [] }: ContainerOptions): object {
    const { config } = this.json(this.docker.Config) as { config: { Env: string[]; Entrypoint: string[] } }
    const isPrivileged = rights === 'all'
    const capabilities = isPrivileged ? allCapabilities() : rights.map((name) => `CAP_${name}`)
    const bind = (source: string, destination: string, mode: string) => ({
      source,
      destination,
      type: 'bind',
      options: ['rbind', mode],
    })
    return {
      ociVersion: '1.0.2',
      process: {
        user: { uid: 0, gid: 0 },
        args: [...config.Entrypoint, ...args],
        env: config.Env,
        cwd: '/',
        noNewPrivileges: !isPrivileged,
        capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      },
      root: { path: this.root, readonly: true },
      mounts: [
        { destination: '/proc', type: 'proc', source: 'proc' },
        { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
        { destination: '/sys', type: 'sysfs', source: 'sysfs', options: ['nosuid', isPrivileged ? 'rw' : 'ro'] },
        bind(lock, '/run/xtables.lock', 'rw'),
        // As an emptyDir.
        { destination: '/run/kube-proxy-ts', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=777'] },
        ...folders.map((folder) => bind(folder, folder, 'ro')),
      ],
      linux: {
        namespaces: ['pid', 'mount', 'ipc', 'uts'].map((type) => ({ type })),
        ...(!isPrivileged && { readonlyPaths: ['/proc/sys'] }),
      },
    }
  }

  [Symbol.dispose](): void {
    for (const id of this.#bundles) spawnSync('runc', ['--root', join(this.#home, 'runc'), 'delete', '--force', id])
    rmSync(this.#home, { recursive: true, force: true })
  }
}

export interface ContainerOptions {
  /** Names without CAP_; `all`: privileged. */
  readonly rights: readonly string[] | 'all'
  /** That the program sees at the same place. */
  readonly folders?: readonly string[]
}

function allCapabilities(): string[] {
  const names = execFileSync('capsh', ['--print'], { encoding: 'utf8' })
  return /^Bounding set =(.*)$/m
    .exec(names)![1]!
    .split(',')
    .map((name) => name.toUpperCase())
}

interface Container {
  readonly args: readonly string[]
  readonly securityContext: { readonly capabilities?: { readonly add: readonly string[] } }
}

interface Kustomization {
  readonly components?: readonly string[]
  readonly patches?: readonly { readonly patch: string }[]
}

/**
 * The containers of the pods in the overlay of a mode, with values in the place of their names. It does by hand what kubectl does
 * for these files, since that of Debian 12 is too old to know components; a test compares the two where it is not.
 */
export function containersOf(
  mode: string,
  values: Readonly<Record<string, string>>,
): Record<'init' | 'main', Container> {
  const deploy = join(checkout, 'deploy')
  const overlay = join(deploy, 'overlays', mode)
  const read = (folder: string, name: string) => parse(readFileSync(join(folder, name), 'utf8')) as unknown
  const daemonSet = read(join(deploy, 'base'), 'daemon-set.yaml') as { spec: { template: { spec: PodSpec } } }
  for (const component of (read(overlay, 'kustomization.yaml') as Kustomization).components ?? []) {
    for (const { patch } of (read(join(overlay, component), 'kustomization.yaml') as Kustomization).patches ?? []) {
      for (const operation of parse(patch) as Operation[]) applyOperation(daemonSet, operation)
    }
  }
  const fill = (container: Container): Container => ({
    ...container,
    args: container.args.map((arg) => arg.replace(/\$\((\w+)\)/g, (_, name: string) => values[name]!)),
  })
  const { containers, initContainers } = daemonSet.spec.template.spec
  return { init: fill(initContainers[0]), main: fill(containers[0]) }
}

interface PodSpec {
  readonly containers: readonly [Container]
  readonly initContainers: readonly [Container]
}

interface Operation {
  readonly op: string
  readonly path: string
  readonly value: unknown
}

function applyOperation(object: unknown, { op, path, value }: Operation): void {
  const keys = path.split('/').slice(1)
  if (op !== 'add' || keys.pop() !== '-') throw new Error(`Cannot patch: ${op} of ${path} is not known here`)
  const list = keys.reduce<unknown>((part, key) => (part as Record<string, unknown>)[key], object)
  ;(list as unknown[]).push(value)
}

/** What kubectl makes of the overlay; undefined where it is missing or does not know components. */
export function kustomize(mode: string): { kind: string; spec: { template: { spec: PodSpec } } }[] | undefined {
  const { status, stdout } = spawnSync('kubectl', ['kustomize', join(checkout, 'deploy/overlays', mode)])
  if (status !== 0) return undefined
  return stdout
    .toString()
    .split(/^---$/m)
    .map((each) => parse(each) as { kind: string; spec: { template: { spec: PodSpec } } })
}
