// The screen of `kube-proxy top`: the alternate one of the terminal, with keys.

import { writeSync } from 'node:fs'
import type { TrafficAnswer } from '../serve/control/traffic.ts'
import { formatTable, planRates, sortKeys, views, type SortKey, type View } from './top-view.ts'

const ESCAPE = '\u001b'
const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l'
const LEAVE_SCREEN = '\u001b[?25h\u001b[?1049l'

export class Screen {
  #options: { view: View; sort: SortKey; filter: string }
  #before: TrafficAnswer | undefined
  #now: TrafficAnswer | undefined
  #isTyping = false
  readonly #redraw = () => this.draw()
  /** At once, for there may be no later. A terminal that has gone cannot be restored. */
  readonly #restore = () => {
    try {
      process.stdin.setRawMode(false)
      writeSync(process.stdout.fd, LEAVE_SCREEN)
    } catch {}
  }

  constructor(options: { view: View; sort: SortKey; filter: string }) {
    this.#options = options
  }

  answer(now: TrafficAnswer): void {
    this.#before = this.#now
    this.#now = now
  }

  open(onQuit: () => void): void {
    // Whatever ends the process, an error of our own too, the terminal is as it was.
    process.once('exit', this.#restore)
    process.stdout.write(ENTER_SCREEN)
    process.stdout.on('resize', this.#redraw)
    process.stdin.setRawMode(true)
    process.stdin.setEncoding('utf8').on('data', (keys: string) => {
      for (const key of keysOf(keys)) this.#press(key, onQuit)
      this.draw()
    })
    this.draw()
  }

  close(): void {
    process.off('exit', this.#restore)
    process.stdout.off('resize', this.#redraw)
    process.stdin.pause()
    this.#restore()
  }

  draw(): void {
    // A terminal that does not know its size says 0.
    const columns = process.stdout.columns || 80
    const rows = process.stdout.rows || 24
    const { sort, filter } = this.#options
    const title = this.#title()
    const keys = this.#isTyping
      ? `filter: ${filter}_`
      : `v view  s sort: ${sort}  / filter: ${filter || 'none'}  q quit`
    const lines = [title, keys, '', ...this.#table({ columns, rows: rows - 4 })]
    // Each line is cleared to its end, and what is below the last, so that nothing flickers.
    process.stdout.write(`\u001b[H${lines.map((line) => `${line.slice(0, columns)}\u001b[K`).join('\r\n')}\u001b[J`)
  }

  lines(): string {
    return `${[this.#title(), ...this.#table({ columns: 120, rows: 1000 })].join('\n')}\n\n`
  }

  json(): string {
    const { view } = this.#options
    const { nowMs, other } = this.#now!
    return `${JSON.stringify({ time: new Date(nowMs).toISOString(), view, rates: this.#rates(), other })}\n`
  }

  #title(): string {
    const { nowMs, mode, nodeName, other, without } = this.#now!
    const rest =
      other.begun + other.sentPackets > 0 ? `, ${other.sentPackets + other.receivedPackets} packets of others` : ''
    return `${nodeName}, ${mode} mode, ${new Date(nowMs).toISOString().slice(11, 19)}${rest}${without === undefined ? '' : ', without packets of connections chosen at connect()'}`
  }

  #table(size: { columns: number; rows: number }): string[] {
    return formatTable(this.#rates(), this.#options, size)
  }

  #rates(): ReturnType<typeof planRates> {
    return planRates(this.#before, this.#now!, this.#options)
  }

  #press(key: string, onQuit: () => void): void {
    const options = this.#options
    if (key === '\u0003') return onQuit()
    if (this.#isTyping) {
      if (key === '\r' || key === '\n') this.#isTyping = false
      else if (key === '\u001b') [this.#isTyping, options.filter] = [false, '']
      else if (key === '\u007f') options.filter = options.filter.slice(0, -1)
      else if (key.length === 1 && key >= ' ') options.filter += key
    } else if (key === 'q') onQuit()
    else if (key === 'v') options.view = views[(views.indexOf(options.view) + 1) % views.length]!
    else if (key === 's') options.sort = sortKeys[(sortKeys.indexOf(options.sort) + 1) % sortKeys.length]!
    else if (key === '/') [this.#isTyping, options.filter] = [true, '']
  }
}

const SEVERAL = new RegExp(`${ESCAPE}\\[[\\d;]*[A-Za-z~]|${ESCAPE}O.|[^]`, 'g')

/** Keys that send several characters, such as arrows, are one key. */
function keysOf(text: string): string[] {
  return text.match(SEVERAL) ?? []
}
