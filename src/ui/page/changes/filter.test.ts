import { describe, expect, it } from 'vitest'
import type { ChangeEntry } from '../../protocol.ts'
import { filterChanges, signOf, tookMs } from './filter.ts'

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
    ['COMMIT', 'other'],
    ['-a -t 10.0.0.1:80 -r 10.1.0.1:80 -m', 'add'],
    ['-d -t 10.0.0.1:80 -r 10.1.0.1:80', 'remove'],
  ] as const)('%j is %s', (line, sign) => {
    expect(signOf(line)).toBe(sign)
  })
})
