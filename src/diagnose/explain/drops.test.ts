import { describe, expect, it } from 'vitest'
import type { Drop } from '../../bpf/drop-watch.ts'
import { dropsBetween } from './drops.ts'

const [CLIENT, ENDPOINT] = ['172.30.0.11', '10.244.2.3']

describe('packets that were dropped between two addresses', () => {
  const drop = (sourcePort: number, reason: string) =>
    ({ source: CLIENT, sourcePort, destination: ENDPOINT, destinationPort: 3000, reason }) as Drop

  it('are those of the client, and not of connections that end meanwhile', () => {
    const [theirs, ours] = [drop(41542, 'NETFILTER_DROP'), drop(40001, 'OTHERHOST')]
    expect(dropsBetween([theirs, ours], new Set([CLIENT, ENDPOINT]), 40001)).toEqual([ours])
  })

  it('are any where the port of the client was changed on the way', () => {
    const masqueraded = drop(1024, 'NETFILTER_DROP')
    expect(dropsBetween([masqueraded], new Set([CLIENT, ENDPOINT]), 40001)).toEqual([masqueraded])
  })
})
