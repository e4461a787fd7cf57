// Programs in places of a sandbox that take one line after the other: a shell, and the doctor.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { join } from 'node:path'
import { checkout } from '../../support/checkout.ts'
import { program, type SandboxProcess } from './sandbox-process.ts'

/** A program that answers to lines with lines. */
class Lines implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #lines: AsyncIterator<string>
  #turn: Promise<unknown> = Promise.resolve()

  constructor(sandbox: SandboxProcess, place: string, command: readonly string[]) {
    const env = { ...process.env, KUBE_PROXY_SANDBOX_DIR: sandbox.root }
    const args = ['sandbox', '--name', sandbox.name, 'exec', place, '--', ...command]
    this.#child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#lines = createInterface({ input: this.#child.stdout! })[Symbol.asyncIterator]()
  }

  /** Writes a line, and reads until `isLast`. One after the other. */
  protected ask(line: string, isLast: (line: string) => boolean): Promise<string[]> {
    const answer = this.#turn.then(async () => {
      this.#child.stdin!.write(`${line}\n`)
      const read: string[] = []
      for (;;) {
        const { value, done } = await this.#lines.next()
        if (done === true) throw new Error(`the program ended after ${line}: ${read.join('\n')}`)
        read.push(value)
        if (isLast(value)) return read
      }
    })
    this.#turn = answer.catch(() => {})
    return answer
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit')
    this.#child.stdin!.end()
    await ended
  }
}

const END = 'end of the command:'

export class Shell extends Lines {
  constructor(sandbox: SandboxProcess, place: string) {
    super(sandbox, place, ['sh'])
  }

  /** What it prints. Rejects when it fails. */
  async run(command: string): Promise<string> {
    const lines = await this.ask(`{ (set -e; ${command}\n) 2>&1; status=$?; echo; echo "${END} $status"; }`, (line) =>
      line.startsWith(END),
    )
    const printed = lines.slice(0, -1).join('\n').trim()
    if (lines.at(-1) !== `${END} 0`) throw new Error(`${command}: ${printed}`)
    return printed
  }
}

export interface DoctorAnswer {
  readonly finding: { readonly code: string; readonly what: string; readonly next: string } | null
  readonly answers: readonly { readonly question: string; readonly result: string; readonly detail: string }[]
  /** Whether a question has no answer. */
  readonly isOpen: boolean
}

export interface DoctorQuestion {
  readonly service: string
  readonly from?: string
  readonly via?: string
  readonly sends?: boolean
  readonly seesPods?: boolean
}

export class DoctorLine extends Lines {
  constructor(sandbox: SandboxProcess, place: string, api: readonly [kubeconfig: string, master: string]) {
    const script = join(import.meta.dirname, 'ask-doctor.mjs')
    super(sandbox, place, [process.execPath, script, join(checkout, 'dist'), ...api])
  }

  async about(question: DoctorQuestion): Promise<DoctorAnswer> {
    const [line = ''] = await this.ask(JSON.stringify(question), () => true)
    const answer = JSON.parse(line) as DoctorAnswer & { readonly error?: string }
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer
  }
}
