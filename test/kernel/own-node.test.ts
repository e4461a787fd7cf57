// The addresses of a machine that is in no cluster.

import { execFileSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { readOwnNode } from '../../src/kube/manifests/own-node.ts'

const isRoot = process.getuid?.() === 0

describe.skipIf(!isRoot)('readOwnNode() (needs root)', () => {
  const ip = (...args: string[]) => execFileSync('ip', args)
  const addresses = async () => (await readOwnNode('me')).addresses.map(({ address }) => address)
  beforeAll(unshareNetwork)

  it('has none on a machine without any', async () => {
    expect(await addresses()).toEqual([])
  })

  it('has the first one where there is no route to anywhere', async () => {
    ip('link', 'add', 'eth0', 'type', 'veth', 'peer', 'eth1')
    ip('addr', 'add', '10.9.0.1/24', 'dev', 'eth0')
    ip('addr', 'add', 'fd09::1/64', 'dev', 'eth0', 'nodad')
    ip('link', 'set', 'eth1', 'up')
    ip('link', 'set', 'eth0', 'up')
    // The link carries packets a little later.
    await eventually('the link is up', async () => ((await addresses()).length > 0 ? undefined : 'no addresses'))
    expect(await addresses()).toEqual(['10.9.0.1', 'fd09::1'])
  })

  it('has the one that packets are sent from where there is a route', async () => {
    ip('addr', 'add', '10.9.1.1/24', 'dev', 'eth0')
    ip('route', 'add', 'default', 'via', '10.9.1.2', 'dev', 'eth0')
    expect(await addresses()).toEqual(['10.9.1.1', 'fd09::1'])
  })
})
