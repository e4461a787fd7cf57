// `kube-proxy top`: what goes through the services of this node, live.

import { setTimeout as sleep } from 'node:timers/promises'
import { ControlClient } from '../serve/control/client.ts'
import type { TrafficAnswer } from '../serve/control/traffic.ts'
import { parseDuration } from '../lib/duration.ts'
import { messageOf } from '../lib/errors.ts'
import { countOf, oneOf, takeFlags } from './preview-flags.ts'
import { Screen } from './top-screen.ts'
import { sortKeys, views } from './top-view.ts'

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
A connection is counted when its first packet passes; one that is sent again counts again. What it costs: docs/guides/top.md.
`
}

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
  // A question that is not answered does not keep it.
  const end = () => {
    ended.abort()
    client.close()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end)
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
  } catch (error) {
    if (!ended.signal.aborted) throw error
  } finally {
    client.close()
    if (isLive) screen.close()
  }
  return 0
}
