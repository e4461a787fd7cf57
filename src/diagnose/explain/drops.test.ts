import { describe, expect, it } from 'vitest'
import type { Drop } from '../../bpf/drop-watch.ts'
import { dropsBetween } from './drops.ts'

const [CLIENT, ENDPOINT] = ['172.30.0.11', '10.244.2.3']
const between = new Set([CLIENT, ENDPOINT])

describe('packets that were dropped between two addresses', () => {
  const drop = (sourcePort: number, reason: string) =>
    ({ source: CLIENT, sourcePort, destination: ENDPOINT, destinationPort: 3000, reason }) as Drop

  it('are those of the client, and not of connections that end meanwhile', () => {
    const [theirs, ours] = [drop(41542, 'NETFILTER_DROP'), drop(40001, 'OTHERHOST')]
    expect(dropsBetween([theirs, ours], between, { clientPort: 40001, keepsPort: false })).toEqual([ours])
  })

  it('are any where the port of the client was changed on the way', () => {
    const masqueraded = drop(1024, 'NETFILTER_DROP')
    expect(dropsBetween([masqueraded], between, { clientPort: 40001, keepsPort: false })).toEqual([masqueraded])
    expect(dropsBetween([masqueraded], between, { clientPort: 40001, keepsPort: true })).toEqual([])
  })
})
