// Where each sandbox of this machine keeps its files, and which of them are alive. A folder per sandbox:
//
//   sandbox.json   who it is: process, number, address ranges
//   control.sock   asks the running process
//   kubeconfig     for kubectl; one more for each node's proxy
//   node-1.log     what the proxy of a node prints

import {
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lockFile, processStart } from '../../../../src/system/process.ts'
import { removeNetnsNames } from './netns-names.ts'

/** What a sandbox records about itself, for other commands and for cleaning up after a crash. */
export interface InstanceRecord {
  readonly name: string
  readonly pid: number
  /** With the pid, the one process that is meant. */
  readonly processStart: number
  /** Its number among the sandboxes of this machine, which gives its address ranges. */
  readonly index: number
  /** Whether it lives in a user namespace of its own, which commands have to enter. */
  readonly privilege: 'root' | 'user namespace'
}

const RECORD = 'sandbox.json'
const LOCK = '.lock'

/** Where sandboxes are kept: one place for root, one for each other user. */
export function instancesFolder(): string {
  const { env } = process
  const given = env['KUBE_PROXY_SANDBOX_DIR']
  if (given !== undefined && given !== '') return given
  if (process.getuid?.() === 0) return '/run/kube-proxy-sandbox'
  const runtime = env['XDG_RUNTIME_DIR']
  if (runtime !== undefined && runtime !== '') return join(runtime, 'kube-proxy-sandbox')
  return join(tmpdir(), `kube-proxy-sandbox-${process.getuid?.() ?? 0}`)
}

export class InstanceFolder {
  readonly root: string
  readonly name: string

  constructor(root: string, name: string) {
    this.root = root
    this.name = name
  }

  path(file: string): string {
    return join(this.root, this.name, file)
  }

  get controlSocket(): string {
    return this.path('control.sock')
  }

  get kubeconfig(): string {
    return this.path('kubeconfig')
  }

  read(): InstanceRecord | undefined {
    try {
      return JSON.parse(readFileSync(this.path(RECORD), 'utf8')) as InstanceRecord
    } catch {
      return undefined
    }
  }

  isAlive(record: InstanceRecord | undefined = this.read()): boolean {
    return record !== undefined && processStart(record.pid) === record.processStart
  }

  create(record: InstanceRecord): void {
    mkdirSync(join(this.root, this.name), { recursive: true })
    // Readers see the whole record or none.
    writeFileSync(this.path(`${RECORD}.new`), `${JSON.stringify(record, null, 2)}\n`)
    renameSync(this.path(`${RECORD}.new`), this.path(RECORD))
  }

  /** Removes the folder and the names of its namespaces: all that a sandbox leaves behind, however it ended. */
  remove(): void {
    const record = this.read()
    if (record !== undefined) removeNetnsNames(record)
    rmSync(join(this.root, this.name), { recursive: true, force: true })
  }
}

/** The sandboxes that have left files here, alive or not, by name. */
export function listInstances(root: string): InstanceFolder[] {
  let entries: string[]
  try {
    entries = readdirSync(root)
  } catch {
    return []
  }
  return entries
    .filter((name) => !name.startsWith('.'))
    .sort()
    .map((name) => new InstanceFolder(root, name))
}

/** Does something while no other sandbox of this place starts or is cleared away. */
export function withInstancesLock<T>(root: string, work: () => T): T {
  mkdirSync(root, { recursive: true })
  chmodSync(root, 0o755)
  const fd = openSync(join(root, LOCK), 'a')
  try {
    lockFile(fd)
    return work()
  } finally {
    closeSync(fd)
  }
}
