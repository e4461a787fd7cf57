// Real kubectl programs, and what they print without what differs from run to run.

import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { tmpdir } from 'node:os'

/** The programs to try: those of KUBECTLS (paths, separated by colons), or the one in PATH. */
export function findKubectls(): string[] {
  const named = process.env['KUBECTLS']
  if (named !== undefined) return named.split(delimiter).filter((path) => path !== '')
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const found = folders.map((folder) => join(folder, 'kubectl')).find((path) => existsSync(path))
  return found === undefined ? [] : [found]
}

export interface Printed {
  readonly code: number
  /** What it printed, to both outputs. */
  readonly text: string
}

/** A kubectl with a home of its own, so that the user's caches are neither read nor written. */
export class Kubectl implements Disposable {
  readonly #program: string
  readonly #home = mkdtempSync(join(tmpdir(), 'kubectl-'))

  constructor(program: string, kubeconfig: string) {
    this.#program = program
    writeFileSync(join(this.#home, 'kubeconfig'), kubeconfig)
    mkdirSync(join(this.#home, 'bin'))
  }

  /** The environment that it runs in. */
  get environment(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      HOME: this.#home,
      KUBECONFIG: join(this.#home, 'kubeconfig'),
      // What a user types into the editor: the port becomes 81.
      KUBE_EDITOR: 'sed -i s/port:.80$/port:\\ 81/',
    }
  }

  get program(): string {
    return this.#program
  }

  run(args: readonly string[], stdin: string = ''): Promise<Printed> {
    return new Promise((resolve) => {
      const options = { env: this.environment, timeout: 120_000 }
      const child = execFile(this.#program, [...args], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1
        resolve({ code, text: `${stdout}${stdout === '' || stdout.endsWith('\n') ? '' : '\n'}${stderr}` })
      })
      child.stdin?.end(stdin)
    })
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true, force: true })
  }

  /** What it left behind in its home, besides what it was given. */
  get leftovers(): string[] {
    return readdirSync(this.#home).filter((name) => !['kubeconfig', 'bin', '.kube'].includes(name))
  }
}

const rules: readonly (readonly [RegExp, string])[] = [
  // Names that are made up, and addresses and ports that are picked.
  [/\b(whoami|web|idle)(-[a-z0-9]{8,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b/g, '$1-XXXXX'],
  [/\bweb-[a-z0-9]{8,10}\b/g, 'web-HASH'],
  [/\b10\.96\.\d+\.\d+\b/g, 'CLUSTER-IP'],
  [/\b10\.64\.\d+\.\d+\b/g, 'POD-IP'],
  [/:3[0-2]\d{3}\//g, ':NODE-PORT/'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME'],
  [/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g, 'UID'],
  [/(resourceVersion: )"\d+"/g, '$1"N"'],
  // Ages, alone in their column.
  [/ (\d+[smh])+(?= |$)/gm, ' AGE'],
  [/\(AGE ago\)/g, ''],
  [/\(\d+s ago\)/g, ''],
  // Words that changed between versions.
  [/ from [a-z]+ namespace$/gm, ''],
  [/ annotate$/gm, ' annotated'],
  [/ unlabeled$/gm, ' labeled'],
  [/^Warning: Immediate deletion.*\n/gm, ''],
  [/^Warning: .*deprecated.*\n/gm, ''],
  [/^warning: /gm, 'Warning: '],
  // Columns are as wide as what is in them.
  [/ {2,}/g, '  '],
  [/ +$/gm, ''],
]

export function normalize(text: string): string {
  return rules.reduce((current, [pattern, replacement]) => current.replace(pattern, replacement), text)
}
