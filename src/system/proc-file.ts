// A file of the kernel that is read again and again, and may be long.

import { closeSync, openSync, read, readSync } from 'node:fs'

/** More than the kernel gives at once: a page, mostly. */
const PIECE = 1 << 14

/** A file under /proc/net is that of the network namespace in which it was opened. */
export class ProcFile {
  #fd: number | undefined
  #readers = 0
  #isClosed = false

  constructor(path: string) {
    try {
      this.#fd = openSync(path, 'r')
    } catch {
      this.#fd = undefined
    }
  }

  /**
   * Passes on what is in it, piece by piece. Another thread waits for the kernel, and other work goes on meanwhile. False:
   * there is no such file, or it was closed.
   */
  async read(each: (piece: string) => void): Promise<boolean> {
    const fd = this.#fd
    if (fd === undefined) return false
    this.#readers++
    try {
      const buffer = Buffer.allocUnsafe(PIECE)
      for (let at = 0; !this.#isClosed;) {
        const length = await readPiece(fd, buffer, at)
        if (length === 0) return !this.#isClosed
        if (!this.#isClosed) each(buffer.toString('latin1', 0, length))
        at += length
      }
      return false
    } finally {
      this.#readers--
      this.#closeWhenFree()
    }
  }

  /** The same, while everything else waits: for a moment that may not be divided. */
  readNow(each: (piece: string) => void): boolean {
    if (this.#fd === undefined || this.#isClosed) return false
    const buffer = Buffer.allocUnsafe(PIECE)
    for (let at = 0; ;) {
      const length = readSync(this.#fd, buffer, 0, PIECE, at)
      if (length === 0) return true
      each(buffer.toString('latin1', 0, length))
      at += length
    }
  }

  close(): void {
    this.#isClosed = true
    this.#closeWhenFree()
  }

  /** Not while the other thread uses it: the number could be another file's by then. */
  #closeWhenFree(): void {
    if (!this.#isClosed || this.#readers > 0 || this.#fd === undefined) return
    closeSync(this.#fd)
    this.#fd = undefined
  }
}

function readPiece(fd: number, buffer: Buffer, at: number): Promise<number> {
  return new Promise((resolve, reject) => {
    read(fd, buffer, 0, PIECE, at, (error, length) => (error === null ? resolve(length) : reject(error)))
  })
}
