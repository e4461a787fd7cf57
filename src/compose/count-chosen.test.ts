import { expect, test } from 'vitest'
import type { ChosenCount } from '../connect/layout.ts'
import type { TrafficCounter } from '../modes/contract.ts'
import { NO_TRAFFIC } from '../traffic/traffic-counts.ts'
import { countingChosen } from './count-chosen.ts'

const byRules = {
  ...NO_TRAFFIC,
  id: 'a',
  protocol: 'TCP' as const,
  frontend: { address: '10.0.0.1', port: 80 },
  backend: { address: '10.1.0.1', port: 8080 },
  begun: 5,
}
const counter: TrafficCounter = {
  read: async () => ({ pairs: [byRules], refusals: [], total: { ...NO_TRAFFIC, begun: 6 } }),
  close: () => {},
}

test('what sockets chose is counted from when somebody asked, beside what the rules did', async () => {
  const { frontend, backend } = byRules
  let counts: ChosenCount[] = [{ protocol: 'TCP', frontend, backend, count: 100 }]
  const opened = countingChosen(() => counter, { counts: async () => counts })(4)
  const read = async () => {
    const { pairs, total } = await opened.read([])
    return [pairs.map(({ begun, isChosen = false }) => [begun, isChosen]), total.begun]
  }
  expect(await read()).toEqual([[[5, false]], 6])
  counts = [{ protocol: 'TCP', frontend, backend, count: 103 }]
  expect(await read()).toEqual([
    [
      [5, false],
      [3, true],
    ],
    9,
  ])
  // The programs were replaced.
  counts = [{ protocol: 'TCP', frontend, backend, count: 2 }]
  expect(await read()).toEqual([
    [
      [5, false],
      [2, true],
    ],
    8,
  ])
})
