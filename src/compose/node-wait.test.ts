import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { silentLogger } from '../lib/log.ts'
import type { Node } from '../kube/types.ts'
import { NodeWait, type NodeWaitOptions } from './node-wait.ts'

const bare: Node = { name: 'n1', zone: undefined, addresses: [], podCIDRs: [], deleting: false, taints: [] }
const addressed: Node = { ...bare, addresses: [{ type: 'ExternalIP', address: '192.0.2.7' }] }
const complete: Node = { ...addressed, podCIDRs: ['10.4.0.0/24'] }

function begin(node: Node | undefined, needs: NodeWaitOptions['needs'] = ['addresses']) {
  const clock = new ManualClock()
  const lines: string[] = []
  const abort = new AbortController()
  let known = node
  const say = (message: string) => void lines.push(message)
  const wait = new NodeWait({
    nodeName: 'n1',
    node: () => known,
    needs,
    clock,
    log: { ...silentLogger, info: say, error: (_, message) => say(message) },
    signal: abort.signal,
  })
  const outcomes: string[] = []
  wait.failed.catch((error: unknown) => outcomes.push(String(error)))
  wait.begin(() => outcomes.push('proceeds'))
  return {
    outcomes,
    lines,
    clock,
    abort,
    wait,
    become: (next: Node | undefined) => {
      known = next
      wait.nodeChanged()
    },
  }
}

const waits = 'Waiting before the first rule:'
const goesOn = 'Going on without:'

describe('NodeWait', () => {
  test('does not wait for what is there', () => {
    for (const { outcomes, lines, wait } of [
      begin(addressed),
      begin(complete, ['addresses', 'podCIDRs']),
      begin(bare, []),
    ]) {
      expect(outcomes).toEqual(['proceeds'])
      expect(lines).toEqual([])
      expect(wait.isOver).toBe(true)
    }
  })

  test('waits for addresses, and goes on as soon as they are there', async () => {
    const { outcomes, lines, clock, wait, become } = begin(undefined)
    await clock.advance(29_000)
    become(bare)
    become({ ...bare, addresses: [{ type: 'Hostname', address: '192.0.2.7' }] })
    become({ ...bare, addresses: [{ type: 'InternalIP', address: 'nonsense' }] })
    expect([outcomes, wait.isOver]).toEqual([[], false])
    become(addressed)
    expect([outcomes, wait.isOver]).toEqual([['proceeds'], true])
    await clock.advance(10 * 60_000)
    become(bare)
    expect(outcomes).toEqual(['proceeds'])
    expect(lines).toEqual([`${waits} there is no Node "n1"`])
  })

  test.each([
    [undefined, 'there is no Node "n1"'],
    [bare, 'the Node has no addresses'],
  ])('goes on without addresses after 30 s: %o', async (node, why) => {
    const { outcomes, lines, clock } = begin(node)
    await clock.advance(29_999)
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(outcomes).toEqual(['proceeds'])
    expect(lines).toEqual([`${waits} ${why}`, `${goesOn} ${why}`])
  })

  test('waits for podCIDRs five minutes more, and then ends', async () => {
    const { outcomes, lines, clock } = begin(bare, ['addresses', 'podCIDRs'])
    await clock.advance(30_000 + 299_999)
    expect(outcomes).toEqual([])
    await clock.advance(1)
    expect(outcomes).toEqual([
      'Error: Cannot detect local traffic (detectLocalMode is NodeCIDR): the Node has no podCIDRs',
    ])
    expect(lines).toEqual([`${waits} the Node has no addresses`, `${waits} the Node has no podCIDRs`])
  })

  test('goes on when podCIDRs come, with the addresses that have come meanwhile or without', async () => {
    const { outcomes, clock, become, lines } = begin(bare, ['addresses', 'podCIDRs'])
    await clock.advance(60_000)
    become(addressed)
    expect(outcomes).toEqual([])
    become(complete)
    expect(outcomes).toEqual(['proceeds'])
    expect(lines.some((line) => line.startsWith(goesOn))).toBe(false)
    const other = begin(addressed, ['addresses', 'podCIDRs'])
    other.become(bare)
    other.become({ ...bare, podCIDRs: ['10.4.0.0/24'] })
    expect(other.outcomes).toEqual(['proceeds'])
    expect(other.lines.at(-1)).toBe(`${goesOn} the Node has no addresses`)
  })

  test('what fails afterwards is reported, and nothing follows an end', async () => {
    const { wait } = begin(addressed, [])
    wait.begin(() => {
      throw new Error('not so')
    })
    await expect(wait.failed).rejects.toThrow('not so')
    const { outcomes, clock, abort, become } = begin(bare)
    abort.abort()
    become(addressed)
    await clock.advance(60_000)
    expect(outcomes).toEqual([])
  })
})
