// `kube-proxy top`: what goes through the services of this node, live.

import { setTimeout as sleep } from 'node:timers/promises'
import { ControlClient } from '../control/client.ts'
import type { TrafficAnswer } from '../control/traffic.ts'
import { parseDuration } from '../lib/duration.ts'
import { messageOf } from '../lib/errors.ts'
import { countOf, oneOf, takeFlags } from './preview-flags.ts'
import { formatTable, planRates, sortKeys, views, type SortKey, type View } from './top-view.ts'

export function formatTopHelp(): string {
  return `\
Shows what goes through the services of this node: new connections, packets and bytes per second, what frontends without
endpoints refuse, and backends that are ejected. The running proxy lets the kernel count while this looks, and no longer.

Usage:
  kube-proxy top [flags]

Flags:
      --view VIEW             services, frontends or backends. (default services)
      --sort KEY              connections, packets, bytes, refused or name. (default bytes)
      --filter TEXT           Only lines whose name has this.
      --interval DURATION     1s to 10s. (default 1s)
      --count N               End after so many tables. Not given: on and on.
      --control-socket PATH   Where the proxy is asked. Empty: that of this network namespace.
  -o, --output text|json      Tables, or one JSON object per line. (default text)
  -h, --help                  Print this text.

Keys, in a terminal: v view, s sort, / filter (Enter ends it, Escape clears it), q quit. Piped, each table is printed below the last.
A connection is counted when its first packet passes; one that is sent again counts again. In ipvs mode: ipvsadm -L -n --rate.
`
}

const ENTER_SCREEN = '\u001b[?1049h\u001b[?25l'
const LEAVE_SCREEN = '\u001b[?25h\u001b[?1049l'

export async function runTopCommand(argv: readonly string[]): Promise<number> {
  if (argv.some((arg) => arg === '--help' || arg === '-h')) {
    process.stdout.write(formatTopHelp())
    return 0
  }
  try {
    return await run(argv)
  } catch (error) {
    process.stderr.write(`kube-proxy: ${messageOf(error)}\n`)
    if (error instanceof RangeError) process.stderr.write('See kube-proxy top --help\n')
    return 1
  }
}

async function run(argv: readonly string[]): Promise<number> {
  const { own, rest } = takeFlags(argv, ['view', 'sort', 'filter', 'interval', 'count', 'control-socket', 'output'])
  if (rest.length > 0) throw new RangeError(`Cannot use ${rest[0]}: there is no such flag`)
  const output = oneOf(own, 'output', ['text', 'json']) ?? 'text'
  const intervalMs = parseDuration(own.get('interval') ?? '1s')
  if (intervalMs === undefined || intervalMs < 1000 || intervalMs > 10_000) {
    throw new RangeError(`--interval must be from 1s to 10s, not ${JSON.stringify(own.get('interval'))}`)
  }
  const screen = new Screen({
    view: oneOf(own, 'view', views) ?? 'services',
    sort: oneOf(own, 'sort', sortKeys) ?? 'bytes',
    filter: own.get('filter') ?? '',
  })
  const count = own.has('count') ? countOf(own, 'count', 1) : Infinity
  const isLive = output === 'text' && process.stdout.isTTY && process.stdin.isTTY
  const client = new ControlClient(own.get('control-socket') ?? '')
  const ended = new AbortController()
  const end = () => ended.abort()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end)
  // The reader of a pipe has gone.
  process.stdout.on('error', end)
  try {
    // The first answer has no rate: an error comes before the screen is taken.
    screen.answer(await client.ask<TrafficAnswer>('traffic'))
    if (isLive) screen.open(end)
    for (let i = 0; i < count && !ended.signal.aborted; i++) {
      await sleep(intervalMs, undefined, { signal: ended.signal }).catch(() => {})
      if (ended.signal.aborted) break
      screen.answer(await client.ask<TrafficAnswer>('traffic'))
      if (isLive) screen.draw()
      else process.stdout.write(output === 'json' ? screen.json() : screen.lines())
    }
  } finally {
    client.close()
    if (isLive) screen.close()
  }
  return 0
}

class Screen {
  #options: { view: View; sort: SortKey; filter: string }
  #before: TrafficAnswer | undefined
  #now: TrafficAnswer | undefined
  #isTyping = false
  readonly #redraw = () => this.draw()

  constructor(options: { view: View; sort: SortKey; filter: string }) {
    this.#options = options
  }

  answer(now: TrafficAnswer): void {
    this.#before = this.#now
    this.#now = now
  }

  open(onQuit: () => void): void {
    process.stdout.write(ENTER_SCREEN)
    process.stdout.on('resize', this.#redraw)
    process.stdin.setRawMode(true)
    process.stdin.setEncoding('utf8').on('data', (keys: string) => {
      for (const key of keys) this.#press(key, onQuit)
      this.draw()
    })
    this.draw()
  }

  close(): void {
    process.stdout.off('resize', this.#redraw)
    process.stdin.setRawMode(false)
    process.stdin.pause()
    process.stdout.write(LEAVE_SCREEN)
  }

  draw(): void {
    const { columns, rows } = process.stdout
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
    const { nowMs, mode, nodeName, other } = this.#now!
    const rest =
      other.begun + other.sentPackets > 0 ? `, ${other.sentPackets + other.receivedPackets} packets of others` : ''
    return `${nodeName}, ${mode} mode, ${new Date(nowMs).toISOString().slice(11, 19)}${rest}`
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
      else if (key >= ' ') options.filter += key
    } else if (key === 'q') onQuit()
    else if (key === 'v') options.view = views[(views.indexOf(options.view) + 1) % views.length]!
    else if (key === 's') options.sort = sortKeys[(sortKeys.indexOf(options.sort) + 1) % sortKeys.length]!
    else if (key === '/') [this.#isTyping, options.filter] = [true, '']
  }
}
