// The connection tracker, with the conntrack program as oracle.

import { execFileSync } from 'node:child_process'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Conntrack, conntrackFlows, type Flow } from '../../src/conntrack/driver.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot } from '../support/nft.ts'

const UDP = 17
const TCP = 6

function conntrack(...args: string[]): string {
  return execFileSync('conntrack', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

interface Sample {
  readonly src: string
  readonly dst: string
  readonly sport: number
  readonly dport: number
  /** The address that answers instead of dst. */
  readonly backend?: string
  readonly protocol?: 'udp' | 'tcp'
  readonly zone?: number
  readonly isAnswered?: boolean
}

function insert({ src, dst, sport, dport, backend, protocol = 'udp', zone, isAnswered = false }: Sample): void {
  const state = protocol === 'tcp' ? ['--state', 'ESTABLISHED'] : []
  const nat = backend === undefined ? [] : ['--dst-nat', backend]
  const status = isAnswered ? ['--status', 'SEEN_REPLY'] : []
  const inZone = zone === undefined ? [] : ['--zone', String(zone)]
  const tuple = ['--src', src, '--dst', dst, '--sport', String(sport), '--dport', String(dport)]
  conntrack('-I', '-p', protocol, ...tuple, '--timeout', '100', ...state, ...nat, ...status, ...inZone)
}

const all = () => true

const summary = ({ original, reply }: Flow) =>
  `${original.src}:${original.sport} > ${original.dst}:${original.dport} < ${reply.src}:${reply.sport}`

describe.skipIf(!isRoot)('Conntrack (needs root)', () => {
  let tracker: Conntrack

  beforeAll(() => {
    unshareNetwork()
    tracker = new Conntrack()
    return () => tracker.close()
  })

  afterEach(() => {
    conntrack('-F')
  })

  it('find() gives the flows of one family and protocol', async () => {
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1000, dport: 53, backend: '10.1.0.1:5353' })
    insert({ src: '10.0.0.2', dst: '10.1.0.7', sport: 1001, dport: 53 })
    insert({ src: '10.0.0.3', dst: '10.96.0.10', sport: 1002, dport: 53, protocol: 'tcp' })
    insert({ src: 'fd00::1', dst: 'fd00:96::10', sport: 1003, dport: 53, backend: 'fd00:1::1' })
    expect((await tracker.find({ family: 4, protocol: UDP }, all)).map(summary).sort()).toEqual([
      '10.0.0.1:1000 > 10.96.0.10:53 < 10.1.0.1:5353',
      '10.0.0.2:1001 > 10.1.0.7:53 < 10.1.0.7:53',
    ])
    expect((await tracker.find({ family: 4, protocol: TCP }, all)).map(summary)).toEqual([
      '10.0.0.3:1002 > 10.96.0.10:53 < 10.96.0.10:53',
    ])
    expect((await tracker.find({ family: 6, protocol: UDP }, all)).map(summary)).toEqual([
      'fd00::1:1003 > fd00:96::10:53 < fd00:1::1:53',
    ])
    expect(await tracker.find({ family: 6, protocol: TCP }, all)).toEqual([])
  })

  it('find() gives the flows that one endpoint answers', async () => {
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1000, dport: 53, backend: '10.1.0.1:5353' })
    insert({ src: '10.0.0.2', dst: '10.96.0.10', sport: 1001, dport: 53, backend: '10.1.0.2:5353' })
    insert({ src: '10.0.0.3', dst: '10.96.0.10', sport: 1002, dport: 53, backend: '10.1.0.1:53' })
    insert({ src: '10.0.0.4', dst: '10.96.0.10', sport: 1003, dport: 53, backend: '10.1.0.1:5353', protocol: 'tcp' })
    insert({ src: 'fd00::1', dst: 'fd00:96::10', sport: 1003, dport: 53, backend: 'fd00:1::1' })
    insert({ src: 'fd00::1', dst: 'fd00:96::10', sport: 1004, dport: 53, backend: 'fd00:1::2' })
    expect((await conntrackFlows.findUdp(4, all, '10.1.0.1:5353')).map(summary)).toEqual([
      '10.0.0.1:1000 > 10.96.0.10:53 < 10.1.0.1:5353',
    ])
    expect((await conntrackFlows.findUdp(6, all, '[fd00:1::2]:53')).map(summary)).toEqual([
      'fd00::1:1004 > fd00:96::10:53 < fd00:1::2:53',
    ])
  })

  it('find() says whether there was an answer, and the zone', async () => {
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1, dport: 53, isAnswered: true })
    insert({ src: '10.0.0.2', dst: '10.96.0.10', sport: 1, dport: 53, zone: 7 })
    const flows = (await tracker.find({ family: 4, protocol: UDP }, all)).toSorted((a, b) => a.zone - b.zone)
    expect(flows.map(({ zone }) => zone)).toEqual([0, 7])
    expect(flows.map(({ isAnswered }) => isAnswered)).toEqual([true, false])
  })

  it('delete() removes these flows and no other', async () => {
    for (let i = 1; i <= 4; i++) insert({ src: `10.0.0.${i}`, dst: '10.96.0.10', sport: 1, dport: 53 })
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1, dport: 53, zone: 3 })
    const doomed = (await tracker.find({ family: 4, protocol: UDP }, all)).filter(
      ({ original: { src }, zone }) => src < '10.0.0.3' && zone === 0,
    )
    expect(tracker.delete(doomed)).toBe(2)
    const left = (await tracker.find({ family: 4, protocol: UDP }, all)).map(
      ({ original: { src }, zone }) => `${src} ${zone}`,
    )
    expect(left.sort()).toEqual(['10.0.0.1 3', '10.0.0.3 0', '10.0.0.4 0'])
  })

  it('delete() does not count flows that are gone', async () => {
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1, dport: 53 })
    const old = await tracker.find({ family: 4, protocol: UDP }, all)
    conntrack('-F')
    expect(tracker.delete(old)).toBe(0)
  })

  it('delete() spares a flow with another id', async () => {
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1, dport: 53 })
    const flows = await tracker.find({ family: 4, protocol: UDP }, all)
    expect(tracker.delete(flows.map((flow) => ({ ...flow, id: flow.id ^ 1 })))).toBe(0)
    expect(await tracker.find({ family: 4, protocol: UDP }, all)).toEqual(flows)
  })

  it('delete() removes more flows than fit in one datagram, of both families', async () => {
    for (let i = 0; i < 40; i++) {
      insert({ src: `10.0.0.${i}`, dst: '10.96.0.10', sport: 1, dport: 53 })
      insert({ src: `fd00::${i + 1}`, dst: 'fd00:96::10', sport: 1, dport: 53 })
    }
    const flows = [
      ...(await tracker.find({ family: 4, protocol: UDP }, all)),
      ...(await tracker.find({ family: 6, protocol: UDP }, all)),
    ]
    const many = Array.from({ length: 20 }, () => flows).flat()
    expect(many.length).toBe(1600)
    expect(tracker.delete(many)).toBe(80)
    expect(conntrack('-L')).toBe('')
  })

  it('conntrackFlows finds and deletes flows of UDP', async () => {
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1, dport: 53 })
    insert({ src: '10.0.0.1', dst: '10.96.0.10', sport: 1, dport: 53, protocol: 'tcp' })
    const flows = await conntrackFlows.findUdp(4, all)
    expect(conntrackFlows.delete(flows)).toBe(1)
    expect(conntrackFlows.delete([])).toBe(0)
    expect(conntrack('-L')).toMatch(/^tcp/)
  })
})
