// A pseudo terminal: the side of the keyboard for us, the side of the screen for a program.

import { openSync } from 'node:fs'
import { constants } from 'node:os'
import { mustCall } from '../../../../src/system/libc.ts'
import type { TerminalSize } from '../streams/command-channels.ts'

const O_RDWR = 2
const O_NOCTTY = 0o400
const O_CLOEXEC = 0o2000000
const TIOCSPTLCK = 0x40045431
const TIOCGPTN = 0x80045430
const TIOCSWINSZ = 0x5414

export interface Terminal {
  readonly master: number
  readonly slave: number
  /** The path of the program's side. */
  readonly path: string
}

export function openTerminal(): Terminal {
  const master = mustCall('open a terminal', 'open', '/dev/ptmx', O_RDWR | O_NOCTTY | O_CLOEXEC)
  mustCall('unlock a terminal', 'ioctl', master, TIOCSPTLCK, Int32Array.of(0))
  const number = new Uint32Array(1)
  mustCall('name a terminal', 'ioctl', master, TIOCGPTN, number)
  const path = `/dev/pts/${number[0]}`
  return { master, slave: openSync(path, O_RDWR | O_NOCTTY), path }
}

/** Sets the size of the terminal: struct winsize. */
export function resizeTerminal(master: number, { columns, rows }: TerminalSize): void {
  const size = Uint16Array.of(rows, columns, 0, 0)
  mustCall('resize a terminal', 'ioctl', master, TIOCSWINSZ, new Uint8Array(size.buffer))
}

export function exitCodeOf(code: number | null, signal: NodeJS.Signals | null): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}
