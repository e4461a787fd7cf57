// Notifications of a real kernel, in a network namespace of this test's own.

import { expect, it } from 'vitest'
import { RTNLGRP_IPV4_IFADDR } from '../../src/links/bytes/uapi/rtnetlink.ts'
import { subscribe } from '../../src/netlink/subscribe.ts'
import { NETLINK_ROUTE } from '../../src/netlink/uapi/netlink.ts'
import { eventually } from '../support/eventually.ts'
import { openNetns, restIn } from '../support/netns/netns.ts'
import { isRoot } from '../support/nft.ts'
import { turnsDuring } from '../support/turns.ts'

it.skipIf(!isRoot)(
  'subscribe() passes on what is slow to take in parts, and others have their turns (needs root)',
  async () => {
    const netns = openNetns('netlink-subscribe')
    using _ = restIn(netns)
    const many = 300
    const busyMs = 3
    let heard = 0
    let reads = 0
    const subscription = subscribe(NETLINK_ROUTE, {
      receiveBuffer: 4 << 20,
      sliceMs: 10,
      groups: [RTNLGRP_IPV4_IFADDR],
      onMessage: () => {
        heard++
        for (const endMs = performance.now() + busyMs; performance.now() < endMs;);
      },
      onRead: () => void reads++,
    })
    try {
      netns.ip(Array.from({ length: many }, (_each, i) => `addr add 10.9.${i >> 8}.${i & 255}/32 dev lo`))
      const { turns } = await turnsDuring(() =>
        eventually('all were heard', () => (heard === many ? undefined : String(heard))),
      )
      // Three or four in each part.
      expect(reads).toBeGreaterThan((many * busyMs) / 20)
      expect(turns).toBeGreaterThan(reads)
    } finally {
      subscription.close()
    }
  },
)
