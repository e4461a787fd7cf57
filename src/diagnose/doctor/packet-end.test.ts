import { expect, test } from 'vitest'
import type { ExplainedDrop } from '../explain/explanation.ts'
import { endText, nextOfEnd } from './packet-end.ts'

const end = (drop: Partial<ExplainedDrop>) => ({
  to: '10.244.2.3:3000',
  answer: 'no answer',
  droppedBy: null,
  dropsError: null,
  drops: [
    {
      packet: '172.30.0.11:40000 > 10.244.2.3:3000',
      reason: null,
      what: null,
      function: null,
      link: 'eth0',
      where: 'on this node',
      enter: null,
      rule: null,
      ...drop,
    },
  ],
})

test.each<[Partial<ExplainedDrop>, string]>([
  [{ reason: 'TC_EGRESS' }, 'tc filter show dev eth0 egress'],
  [{ reason: 'TC_INGRESS', enter: 'nsenter -t 7 -n' }, 'nsenter -t 7 -n tc filter show dev eth0 ingress'],
  [{ reason: 'XDP' }, 'ip -d link show dev eth0'],
  [{ reason: 'XFRM_POLICY' }, 'ip xfrm policy'],
  [{ reason: 'IP_RPFILTER' }, 'ip route get 172.30.0.11    # and: sysctl -a -r rp_filter'],
  [{ reason: 'OTHERHOST' }, 'ip neigh show'],
  [{ rule: 'table ip w, chain i: drop', enter: 'ip netns exec b1' }, 'ip netns exec b1 nft -a list chain ip w i'],
])('%o: %s', (drop, next) => {
  expect(nextOfEnd(end(drop), '')).toBe(next)
})

test('what the kernel says comes with its own word', () => {
  expect(endText(end({ reason: 'TC_EGRESS', what: 'a tc filter drops it' }))).toBe(
    'the packet 172.30.0.11:40000 > 10.244.2.3:3000 is dropped on this node, link eth0: a tc filter drops it (TC_EGRESS)',
  )
})
