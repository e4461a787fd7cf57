// This program once more, with the same arguments: in a user namespace, or in the background, or both.

import { spawn, spawnSync, type StdioOptions } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { UnsupportedError } from '../../../../src/lib/errors.ts'
import { instancesFolder } from '../instance/instance-folder.ts'
import { openLoopbackSocket } from '../netns/sockets.ts'
import { userNamespaceRemedy } from '../user-namespace.ts'

/** Set in a process that runs inside the user namespace. */
const INSIDE = 'KUBE_PROXY_SANDBOX_INSIDE'
/** The port of the socket that it has as file descriptor 3, which is on the machine's own loopback. */
const OUTER_PORT = 'KUBE_PROXY_SANDBOX_API_PORT'
const OUTER_FD = 3
/** The same for the page. */
const OUTER_PAGE_PORT = 'KUBE_PROXY_SANDBOX_PAGE_PORT'
const OUTER_PAGE_FD = 4
/** Set in a process that another one waits for, until it says that it is ready. */
const BACKGROUND = 'KUBE_PROXY_SANDBOX_BACKGROUND'

const CAP_NET_ADMIN = 12n
const CAP_SYS_ADMIN = 21n

const userNamespace = ['--user', '--map-root-user', '--net', '--mount'] as const

export function isInsideUserNamespace(): boolean {
  return process.env[INSIDE] === '1'
}

export function isInBackground(): boolean {
  return process.env[BACKGROUND] === '1' && process.send !== undefined
}

/** A socket on the machine's loopback. */
interface OuterSocket {
  readonly fd: number
  readonly port: number
}

/** The one that was handed over for the API; undefined on the machine itself. */
export function outerSocket(): OuterSocket | undefined {
  return handedOver(OUTER_FD, process.env[OUTER_PORT])
}

/** The same for the page. */
export function outerPageSocket(): OuterSocket | undefined {
  return handedOver(OUTER_PAGE_FD, process.env[OUTER_PAGE_PORT])
}

function handedOver(fd: number, text: string | undefined): OuterSocket | undefined {
  const port = Number(text)
  return Number.isInteger(port) && port > 0 ? { fd, port } : undefined
}

/** Whether this process may make network namespaces by itself. */
export function mayBuildNetworks(): boolean {
  const [, effective = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? []
  const has = (capability: bigint) => ((BigInt(`0x${effective}`) >> capability) & 1n) === 1n
  return has(CAP_NET_ADMIN) && has(CAP_SYS_ADMIN)
}

export interface RerunOptions {
  readonly where: 'user namespace' | 'as we are'
  readonly life: 'foreground' | 'detached'
}

/** What the process in the background reports to the one that started it. */
export interface Announcement {
  readonly ready: string
}

/** Runs this program again and answers its exit status; in the background, 0 as soon as it says that it is ready. */
export async function rerun(argv: readonly string[], { where, life }: RerunOptions): Promise<number> {
  const self = [process.execPath, ...process.execArgv, process.argv[1]!, 'sandbox', ...argv]
  const env: Record<string, string> = {}
  let outer: readonly (number | 'ignore')[] = ['ignore', 'ignore']
  if (where === 'user namespace') {
    requireUserNamespace()
    const api = openLoopbackSocket()
    const page = openLoopbackSocket()
    outer = [api.fd, page.fd]
    const ports = { [OUTER_PORT]: String(api.port), [OUTER_PAGE_PORT]: String(page.port) }
    Object.assign(env, insideEnvironment(), ports)
    self.unshift('unshare', ...userNamespace, '--')
  }
  return life === 'detached'
    ? runDetached(self, outer, env)
    : runAttached(self, ['inherit', 'inherit', 'inherit', ...outer], env)
}

/** Inside, every user is root: where the files are must be said. */
function insideEnvironment(): Record<string, string> {
  return { [INSIDE]: '1', KUBE_PROXY_SANDBOX_DIR: instancesFolder() }
}

/** Runs this program again in the user namespace of a process, and answers its exit status. */
export function enterUserNamespace(pid: number, argv: readonly string[]): Promise<number> {
  const self = [process.execPath, ...process.execArgv, process.argv[1]!, 'sandbox', ...argv]
  const command = ['nsenter', '--preserve-credentials', `--user=/proc/${pid}/ns/user`, '--', ...self]
  return runAttached(command, 'inherit', insideEnvironment())
}

/** Runs a program to its end, with the terminal, and answers its status as a shell does. */
export function runAttached(
  [program = '', ...args]: readonly string[],
  stdio: StdioOptions,
  env: Readonly<Record<string, string>>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio, env: { ...process.env, ...env } })
    // They reach the whole group: this process waits for the other one.
    for (const signal of ['SIGINT', 'SIGQUIT'] as const) process.on(signal, () => {})
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
    child.on('error', (error) => reject(startError(program, error)))
    child.on('exit', (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])))
  })
}

function runDetached(
  command: readonly string[],
  outer: readonly (number | 'ignore')[],
  env: Record<string, string>,
): Promise<number> {
  const [program = '', ...args] = command
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', ...outer, 'ipc'],
      env: { ...process.env, ...env, [BACKGROUND]: '1' },
    })
    child.stderr?.pipe(process.stderr)
    child.on('error', (error) => reject(startError(program, error)))
    child.on('exit', (code) => resolve(code ?? 1))
    child.on('message', ({ ready }: Announcement) => {
      process.stdout.write(ready)
      child.removeAllListeners('exit')
      child.stderr?.destroy()
      child.disconnect()
      child.unref()
      resolve(0)
    })
  })
}

/** Tells the process that waits for this one. */
export function announce(announcement: Announcement): void {
  process.send?.(announcement)
}

function startError(program: string, error: NodeJS.ErrnoException): Error {
  if (error.code !== 'ENOENT') return new Error(`Cannot run ${program}: ${error.message}`, { cause: error })
  const isTool = program === 'unshare' || program === 'nsenter'
  return isTool
    ? new UnsupportedError('a user namespace', `${program} is missing (package util-linux)`)
    : new Error(`Cannot run ${program}: there is no such program`)
}

/** Tries it. Throws an error that says what would help. */
function requireUserNamespace(): void {
  const tried = spawnSync('unshare', [...userNamespace, '--', 'true'], { encoding: 'utf8' })
  if (tried.error !== undefined) throw startError('unshare', tried.error)
  if (tried.status === 0) return
  const reason = tried.stderr.trim().replace(/^unshare: /, '')
  const remedy = userNamespaceRemedy()
  const or = remedy === undefined ? '' : `, or allow user namespaces: ${remedy}`
  throw new Error(
    `Cannot build a network: this process may not make network namespaces, neither by itself nor in a user namespace (${reason}). Run it as root (put sudo in front; in a container, --privileged)${or}`,
  )
}
