// `kube-proxy top`: what goes through the services of this node, live.

import { setTimeout as sleep } from 'node:timers/promises'
import type { TrafficAnswer } from '../serve/control/traffic.ts'
import { Screen } from './top-screen.ts'
import type { SortKey, View } from './top-view.ts'
import { openEndableClient } from './endable-client.ts'

export interface TopOptions {
  readonly view: View
  readonly sort: SortKey
  readonly filter: string
  readonly interval: number
  readonly count: number | undefined
  readonly 'control-socket': string | undefined
  readonly output: 'text' | 'json'
}

export async function runTopCommand(options: TopOptions): Promise<number> {
  const { output, interval, count = Infinity } = options
  const screen = new Screen({ ...options })
  const isLive = output === 'text' && process.stdout.isTTY && process.stdin.isTTY
  const { client, ended, end } = openEndableClient(options['control-socket'])
  try {
    // The first answer has no rate: an error comes before the screen is taken.
    screen.answer(await client.ask<TrafficAnswer>('traffic'))
    if (isLive) screen.open(end)
    for (let i = 0; i < count && !ended.signal.aborted; i++) {
      await sleep(interval, undefined, { signal: ended.signal }).catch(() => {})
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
