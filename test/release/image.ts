// An archive of scripts/image, unpacked.

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface Manifest {
  readonly Config: string
  readonly Layers: readonly string[]
}

/** An archive of scripts/image: its files, and those of the image. */
export class Image implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), 'image-'))
  readonly blobs = join(this.#home, 'blobs')
  readonly root = join(this.#home, 'root')

  constructor(archive: string) {
    for (const folder of [this.blobs, this.root]) mkdirSync(folder)
    execFileSync('tar', ['-xf', archive, '-C', this.blobs])
    for (const layer of this.docker.Layers) {
      execFileSync('tar', ['-xpzf', join(this.blobs, layer), '-C', this.root])
    }
  }

  /** What docker load reads. */
  get docker(): Manifest {
    return (this.json('manifest.json') as [Manifest])[0]
  }

  json(file: string): unknown {
    return JSON.parse(readFileSync(join(this.blobs, file), 'utf8'))
  }

  [Symbol.dispose](): void {
    rmSync(this.#home, { recursive: true, force: true })
  }
}
