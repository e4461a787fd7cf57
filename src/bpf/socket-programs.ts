// Programs that the kernel runs when a process of a cgroup uses a socket.

import { asBytes } from '../lib/ip.ts'
import { Buffer } from 'node:buffer'
import { closeSync, constants, openSync } from 'node:fs'
import { mustCall } from '../system/libc.ts'
import { Attributes, bpf, memoryOf, tryBpf } from './call.ts'
import { assemble, type Step } from './instructions.ts'
import { COMMAND, type Hook, HOOKS } from './uapi.ts'

/** So much of what the kernel has against a program is read. */
const LOG_LENGTH = 16 << 10

/** A program that runs for a cgroup while this is open, and no longer: it goes with this process. */
export class AttachedProgram {
  readonly #hook: Hook
  readonly #link: number

  constructor(hook: Hook, steps: readonly Step[], cgroup: string) {
    this.#hook = hook
    this.#link = withProgram(hook, steps, (program) => {
      const folder = openSync(cgroup, constants.O_RDONLY | constants.O_DIRECTORY)
      try {
        const attributes = new Attributes().number(0, program).number(4, folder).number(8, HOOKS[hook].attach)
        return bpf(`attach a BPF program to ${cgroup}`, COMMAND.createLink, attributes)
      } finally {
        closeSync(folder)
      }
    })
  }

  /** Another program takes its place, at one moment. */
  replace(steps: readonly Step[]): void {
    withProgram(this.#hook, steps, (program) => {
      bpf('replace a BPF program', COMMAND.updateLink, new Attributes().number(0, this.#link).number(4, program))
    })
  }

  close(): void {
    closeFd(this.#link)
  }
}

/** Throws when the kernel does not take the program. Nothing of it stays. */
export function verifyProgram(hook: Hook, steps: readonly Step[]): void {
  withProgram(hook, steps, () => {})
}

/** The program stays while it is attached; its descriptor is needed no longer than that takes. */
function withProgram<T>(hook: Hook, steps: readonly Step[], use: (program: number) => T): T {
  const program = loadProgram(hook, steps)
  try {
    return use(program)
  } finally {
    closeFd(program)
  }
}

function loadProgram(hook: Hook, steps: readonly Step[]): number {
  const { bytes, count } = assemble(steps)
  const attributes = new Attributes()
    .number(0, HOOKS[hook].type)
    .number(4, count)
    .pointer(8, memoryOf(bytes))
    .pointer(16, memoryOf(asBytes('Apache-2.0\0')))
    .name(48, hook)
    .number(68, HOOKS[hook].attach)
  const loaded = tryBpf(COMMAND.loadProgram, attributes)
  if (loaded >= 0) return loaded
  // Only now, since a log that is too short for what is right would be an error on older kernels.
  const log = Buffer.alloc(LOG_LENGTH)
  attributes.number(24, 1).number(28, log.length).pointer(32, log)
  return bpf(`load a BPF program for ${hook}()`, COMMAND.loadProgram, attributes, () => lastLines(log))
}

/** What the kernel complained about stands at the end. */
function lastLines(log: Buffer): string | undefined {
  const text = log.toString('latin1', 0, Math.max(0, log.indexOf(0))).trim()
  return text === '' ? undefined : text.split('\n').slice(-3).join('; ')
}

function closeFd(fd: number): void {
  mustCall('close a descriptor', 'close', fd)
}
