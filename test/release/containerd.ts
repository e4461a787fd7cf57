// A containerd of the test's own, with runc, as Debian has them: its files, its socket and its containers are in a folder that goes.

import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { debianProgram } from '../support/debian-program.ts'
import { eventually } from '../support/eventually.ts'

export interface ContainerOptions {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** The path of a network namespace. */
  readonly network: string
  readonly mounts: readonly Mount[]
  readonly isPrivileged: boolean
  /** Names without CAP_. Of no meaning to one that is privileged. */
  readonly capabilities: readonly string[]
  readonly isRootReadOnly: boolean
  readonly isSeccompOn: boolean
  readonly mayGainPrivileges: boolean
  readonly isAppArmorOn?: boolean
}

export interface Mount {
  readonly source: string
  readonly destination: string
  readonly isReadOnly: boolean
}

/** What ctr gives to a container if it is not told otherwise; kubelet asks for none of them here. */
const usualCapabilities =
  'CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE'

const config = (home: string) => `version = 2
root = "${home}/root"
state = "${home}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "${home}/socket"
`

export class Containerd implements AsyncDisposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'containerd-'))
  readonly #folder = debianProgram('containerd', 'containerd')
  readonly #ctr = [join(this.#folder, 'ctr'), '--address', join(this.#home, 'socket'), '--namespace', 'test']
  readonly #daemon: ChildProcess
  #count = 0
  image = ''

  private constructor() {
    writeFileSync(join(this.#home, 'config.toml'), config(this.#home))
    // It looks for its shim and for runc in PATH.
    const env = { ...process.env, PATH: `${this.#folder}:${process.env['PATH']}:/usr/sbin` }
    const program = [join(this.#folder, 'containerd'), '--config', join(this.#home, 'config.toml')]
    const log = join(this.#home, 'log')
    const logged = ['sh', '-c', 'exec "$@" >"$0" 2>&1', log, ...program]
    this.#daemon = spawn('setpriv', ['--pdeathsig', 'KILL', '--', ...logged], { env, stdio: 'ignore' })
  }

  /** Starts it, with one image. */
  static async start(archive: string): Promise<Containerd> {
    const containerd = new Containerd()
    try {
      await eventually('containerd answers', () => {
        const { status } = spawnSync(containerd.#ctr[0]!, [...containerd.#ctr.slice(1), 'version'])
        if (containerd.#daemon.exitCode !== null) return { fatal: containerd.#log() }
        return status === 0 ? undefined : containerd.#log()
      })
      containerd.#run('images', 'import', archive)
      containerd.image = containerd.#run('images', 'list', '--quiet').trim()
    } catch (error) {
      await containerd[Symbol.asyncDispose]()
      throw error
    }
    return containerd
  }

  /** The command that runs a container to its end, hands signals on to it, and ends with its status. */
  command(options: ContainerOptions): string[] {
    const id = `c${this.#count++}`
    const { command, env, network, isPrivileged, capabilities } = options
    // It adds first and drops then.
    const usual = usualCapabilities.split(' ').filter((name) => !capabilities.includes(name))
    const drops = usual.flatMap((name) => ['--cap-drop', `CAP_${name}`])
    const rights = isPrivileged
      ? ['--privileged']
      : [...drops, ...capabilities.flatMap((name) => ['--cap-add', `CAP_${name}`])]
    const flags = [
      ...rights,
      ...(options.isRootReadOnly ? ['--read-only'] : []),
      ...(options.isSeccompOn && !isPrivileged ? ['--seccomp'] : []),
      ...(options.isAppArmorOn === true ? ['--apparmor-default-profile', 'kube-proxy-ts-test'] : []),
      ...(options.mayGainPrivileges ? ['--allow-new-privs'] : []),
      '--with-ns',
      `network:${network}`,
      ...Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
      ...this.#mounts(id, options.mounts).flatMap(({ source, destination, isReadOnly }) => [
        '--mount',
        `type=bind,src=${source},dst=${destination},options=rbind:${isReadOnly ? 'ro' : 'rw'}`,
      ]),
    ]
    return [...this.#ctr, 'run', '--rm', ...flags, this.image, id, ...command]
  }

  /** ctr, unlike kubelet, makes /run a place to write to: what is mounted there is put into one that is not. */
  #mounts(id: string, mounts: readonly Mount[]): Mount[] {
    const run = join(this.#home, `run-${id}`)
    mkdirSync(run)
    for (const { source, destination } of mounts) {
      const name = /^\/run\/([^/]+)$/.exec(destination)?.[1]
      if (name === undefined) continue
      if (statSync(source).isDirectory()) mkdirSync(join(run, name))
      else writeFileSync(join(run, name), '')
    }
    return [
      { source: run, destination: '/run', isReadOnly: true },
      ...mounts.filter(({ source }) => existsSync(source)),
    ]
  }

  /** Ends what still runs. */
  clear(): void {
    for (const id of this.#run('tasks', 'list', '--quiet').split('\n').filter(Boolean)) {
      spawnSync(this.#ctr[0]!, [...this.#ctr.slice(1), 'tasks', 'delete', '--force', id])
      spawnSync(this.#ctr[0]!, [...this.#ctr.slice(1), 'containers', 'delete', id])
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#daemon.exitCode === null) {
      if (this.image !== '') this.clear()
      const ended = once(this.#daemon, 'exit')
      this.#daemon.kill('SIGTERM')
      await ended
    }
    rmSync(this.#home, { recursive: true, force: true })
  }

  #run(...args: string[]): string {
    return execFileSync(this.#ctr[0]!, [...this.#ctr.slice(1), ...args], { encoding: 'utf8' })
  }

  #log(): string {
    const file = join(this.#home, 'log')
    return existsSync(file) ? readFileSync(file, 'utf8') : ''
  }
}
