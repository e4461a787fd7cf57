// What `npm pack` gives, unpacked as a user would do it.

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkout } from '../support/checkout.ts'

/** The folder of the package; it goes when it is disposed of. */
export class Packed implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'packed-'))
  readonly folder = join(this.#home, 'package')
  readonly program = join(this.folder, 'dist/release/kube-proxy.cjs')

  /** The file that npm made. */
  readonly archive: string

  constructor() {
    const args = ['pack', '--silent', '--pack-destination', this.#home]
    const name = execFileSync('npm', args, { cwd: checkout, encoding: 'utf8' }).trim().split('\n').at(-1)!
    this.archive = join(this.#home, name)
    execFileSync('tar', ['-xzf', this.archive, '-C', this.#home])
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true })
  }
}

/** Why npm cannot fetch packages here; undefined where it can. */
export function whyNoNpm(): string | undefined {
  const { status, error, stderr } = spawnSync('npm', ['ping', '--fetch-retries=0'], { encoding: 'utf8' })
  return status === 0 ? undefined : `npm cannot fetch packages: ${error?.message ?? stderr.trim().split('\n').at(-1)}`
}
