// The image under runc, with the rights of the manifests and nothing else.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkout } from '../support/checkout.ts'
import { renderKustomization } from '../support/kustomize.ts'

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

  /** The command that runs the image's program, in the network namespace of its caller. */
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

/** The containers of the pods in the overlay of a mode, with values in the place of their names. */
export function containersOf(
  mode: string,
  values: Readonly<Record<string, string>>,
): Record<'init' | 'main', Container> {
  const objects = renderKustomization(join(checkout, 'deploy/overlays', mode))
  const { spec } = objects.find(({ kind }) => kind === 'DaemonSet') as unknown as {
    spec: { template: { spec: PodSpec } }
  }
  const fill = (container: Container): Container => ({
    ...container,
    args: container.args.map((arg) => arg.replace(/\$\((\w+)\)/g, (_, name: string) => values[name]!)),
  })
  const { containers, initContainers } = spec.template.spec
  return { init: fill(initContainers[0]), main: fill(containers[0]) }
}

interface PodSpec {
  readonly containers: readonly [Container]
  readonly initContainers: readonly [Container]
}
