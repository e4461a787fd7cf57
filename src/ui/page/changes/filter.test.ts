import { describe, expect, it } from 'vitest'
import type { ChangeEntry } from '../../protocol.ts'
import { ejectedIn, filterChanges, foldIdle, signOf, tookMs } from './filter.ts'

const change: ChangeEntry = {
  id: 1,
  node: 'node-1',
  mode: 'nftables',
  family: 4,
  why: 'event',
  objects: [],
  moreObjects: 0,
  ports: [],
  morePorts: 0,
  receivedMs: 100,
  beganMs: 101,
  doneMs: 104,
  operations: 1,
  bytes: 10,
  commands: [],
  moreCommands: 0,
}

describe('the timeline of changes', () => {
  const changes: ChangeEntry[] = [
    { ...change, id: 1, ports: ['default/web:http'] },
    { ...change, id: 2, ports: ['default/web'], node: 'node-2' },
    { ...change, id: 3, ports: ['default/web-2'] },
    { ...change, id: 4, objects: [{ kind: 'Service', namespace: 'default', name: 'web', verb: 'deleted' }] },
  ]
  const ids = (service: string, node = '') => filterChanges(changes, { service, node }).map(({ id }) => id)

  it('has the newest first', () => {
    expect(ids('')).toEqual([4, 3, 2, 1])
  })

  it('keeps to a service, and not to another whose name begins like it', () => {
    expect(ids('default/web')).toEqual([4, 2, 1])
    expect(ids('default/web', 'node-2')).toEqual([2])
  })

  it('tells the time from the event to the acknowledgement', () => {
    expect([tookMs(change), tookMs({ ...change, receivedMs: undefined })]).toEqual([4, null])
  })

  it.each([
    ['add element ip kube-proxy x { 1 }', 'add'],
    ['delete element ip kube-proxy x { 1 }', 'remove'],
    ['-A KUBE-SERVICES -j X', 'add'],
    ['-X KUBE-SVC-1', 'remove'],
    ['-t nat -A KUBE-SERVICES -j X', 'add'],
    ['-t nat -X KUBE-SVC-1', 'remove'],
    ['COMMIT', 'other'],
    ['-a -t 10.0.0.1:80 -r 10.1.0.1:80 -m', 'add'],
    ['-d -t 10.0.0.1:80 -r 10.1.0.1:80', 'remove'],
  ] as const)('%j is %s', (line, sign) => {
    expect(signOf(line)).toBe(sign)
  })
})

describe('rows', () => {
  it('that did nothing are folded, each run of them', () => {
    const of = (id: number, operations: number, error?: string) => ({ ...change, id, operations, error })
    const rows = foldIdle([of(1, 3), of(2, 0), of(3, 0), of(4, 0, 'refused'), of(5, 0)])
    expect(rows.map((row) => ('id' in row ? row.id : row.map(({ id }) => id)))).toEqual([1, [2, 3], 4, [5]])
  })

  const table = 'element ip kube-proxy service-endpoints'
  const moved = [
    `delete element ip kube-proxy served-ips-3 { 10.96.1.2 . tcp . 80 }`,
    `delete ${table} { 10.96.1.2 . tcp . 80 . 2 : 10.244.2.3 . 3000 }`,
    `add element ip kube-proxy served-ips-2 { 10.96.1.2 . tcp . 80 }`,
    `add ${table} { 10.96.1.2 . tcp . 80 . 1 : 10.244.2.3 . 3000 }`,
  ]

  it('of ejections name the endpoint, and not those that only moved', () => {
    const removed = `delete ${table} { 10.96.1.2 . tcp . 80 . 1 : 10.244.1.4 . 3000 }`
    const added = `add ${table} { 10.96.1.2 . tcp . 80 . 2 : 10.244.1.4 . 3000 }`
    const of = (line: string, moreCommands = 0) => ejectedIn({ commands: [...moved, line], moreCommands })
    expect(of(removed)).toEqual({ ejected: ['10.244.1.4'], back: [] })
    expect(of(added)).toEqual({ ejected: [], back: ['10.244.1.4'] })
    expect(of(removed, 3)).toEqual({ ejected: [], back: [] })
  })
})
