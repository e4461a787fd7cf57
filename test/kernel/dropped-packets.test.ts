// The kernel says which packets it drops, and why.

import { connect } from 'node:net'
import { once } from 'node:events'
import { createSocket } from 'node:dgram'
import { beforeAll, describe, expect, it } from 'vitest'
import { DropWatch } from '../../src/bpf/drop-watch.ts'
import { KernelTypes } from '../../src/bpf/btf.ts'
import { eventually } from '../support/eventually.ts'
import { Rtnetlink } from '../../src/links/rtnetlink.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot, loadWithNft } from '../support/nft.ts'

beforeAll(() => {
  if (!isRoot) return
  unshareNetwork()
  using links = new Rtnetlink()
  links.setUp('lo')
})

describe.skipIf(!isRoot)('DropWatch', () => {
  it('a TCP packet to a port without a listener', async () => {
    const watch = new DropWatch([9])
    try {
      const socket = connect({ host: '127.0.0.1', port: 9 })
      await once(socket, 'error')
      await eventually('the kernel tells', () => {
        const drop = watch.read().find(({ destinationPort }) => destinationPort === 9)
        if (drop === undefined) return 'nothing yet'
        expect(drop).toMatchObject({ reason: 'NO_SOCKET', source: '127.0.0.1', protocol: 'TCP', link: 'lo' })
        expect(drop.namespace).toBeGreaterThan(0)
        return undefined
      })
    } finally {
      watch.close()
    }
  })

  it('a datagram over IPv6 that a rule drops; others are left out', async () => {
    loadWithNft('table inet wall { chain out { type filter hook output priority 0; udp dport { 4001, 4002 } drop; }; }')
    const watch = new DropWatch([4001])
    const socket = createSocket('udp6')
    try {
      for (const port of [4002, 4001]) socket.send('?', port, '::1', () => {})
      await eventually('the kernel tells', () => {
        const drops = watch.read()
        if (drops.length === 0) return 'nothing yet'
        expect(drops).toMatchObject([
          { reason: 'NETFILTER_DROP', destination: '::1', destinationPort: 4001, protocol: 'UDP' },
        ])
        return undefined
      })
    } finally {
      socket.close()
      watch.close()
    }
  })

  it('BTF that is none is refused, and members that do not exist have no place', () => {
    expect(() => new KernelTypes(Buffer.alloc(24))).toThrow('Cannot read BTF')
    const types = KernelTypes.read()
    expect(types.offsetOf('sk_buff', 'no_such_member')).toBeUndefined()
    expect(types.offsetOf('no_such_struct', 'x')).toBeUndefined()
  })
})
