// What Go's kube-proxy has written, read back: its rules have anonymous maps, which ours never have.

import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { formatIp, ipBytes } from '../../src/lib/ip.ts'
import { readWalkableTable } from '../../src/nftables/read-walkable.ts'
import { unshareNetwork } from '../../src/system/netns.ts'

const fixture = join(import.meta.dirname, '../e2e/fixtures/kube-proxy/nftables/tables.nft')

describe.skipIf(process.getuid?.() !== 0)("explain on a node with Go's kube-proxy (needs root)", () => {
  beforeAll(() => {
    unshareNetwork()
    execFileSync('nft', ['-f', fixture])
  })

  it.each([
    [4, '10.1.0.7', '10.2.255.1', ['10.1.0.12', '10.1.1.11']],
    [4, '10.1.0.7', '10.2.255.2', ['10.1.0.12', '10.1.0.13']],
    [6, 'fd01:0:0:a::7', 'fd02::ff01', ['fd01:0:0:a::13', 'fd01:0:0:b::12']],
  ] as const)('IPv%i from %s to %s leads to every endpoint', (family, source, service, endpoints) => {
    const table = readWalkableTable({ family: family === 4 ? 'ip' : 'ip6', table: 'kube-proxy' }, Date.now())!
    const ways = endpoints.map((_, chosen) =>
      table.walk(
        {
          protocol: 'TCP',
          inputInterface: 'eth0',
          source: ipBytes(source),
          sourcePort: 50000,
          destination: ipBytes(service),
          destinationPort: 80,
        },
        { isLocalAddress: () => false, random: () => chosen, now: () => 0 },
      ),
    )
    expect(ways.map(({ destination, destinationPort }) => `${formatIp(destination)}:${destinationPort}`)).toEqual(
      endpoints.map((address) => `${formatIp(ipBytes(address))}:8080`),
    )
  })
})
