import { describe, expect, it } from 'vitest'
import type { TraceEvent } from '../../nftables/bytes/trace.ts'
import type { TracedRule } from '../../nftables/open-trace.ts'
import { followTrace } from './trace.ts'

const flow = { source: '172.30.0.11', sourcePort: 44_776, destination: '10.96.0.80', destinationPort: 80 }
const OWN = 'kube-proxy-explain-7'

function to(destination: string, destinationPort: number): Partial<TraceEvent> {
  return { packet: { source: '172.30.0.11', sourcePort: 44_776, destination, destinationPort } }
}
const dialled = to('10.96.0.80', 80)

/** `TABLE CHAIN`, then the rule, if it met one. */
function metRule(place: string, more: Partial<TraceEvent> = {}, rule?: string): TracedRule {
  const [table = '', chain = ''] = place.split(' ')
  const event: TraceEvent = { id: 7, family: 2, table, chain, type: 'rule', verdict: 'continue', ...more }
  return { event: rule === undefined ? event : { handle: 1n, ...event }, rule }
}
const entry = metRule(`${OWN} output`, dialled, 'ip daddr 10.96.0.80 meta nftrace set 1')

describe('followTrace()', () => {
  it('follows a packet to where it is translated', () => {
    const traced = followTrace(
      [
        entry,
        metRule('kube-proxy nat-output', { ...dialled, verdict: 'jump services' }, 'jump services'),
        metRule('kube-proxy services', { type: 'return', verdict: 'continue', mark: 0x4000 }),
        metRule('kube-proxy nat-output'),
        metRule('kube-proxy nat-output', { type: 'policy', verdict: undefined, policy: 'accept' }),
        metRule('kube-proxy nat-postrouting', { ...to('10.244.1.3', 3000), verdict: 'accept' }, 'masquerade'),
        metRule('firewall out', { family: 1, handle: 9n }),
      ],
      flow,
      OWN,
    )
    expect(traced).toEqual({
      outcome: 'to',
      destination: '10.244.1.3:3000',
      droppedBy: null,
      lines: [
        'ip kube-proxy nat-output rule jump services (verdict jump services)',
        'ip kube-proxy services verdict continue meta mark 0x00004000',
        'ip kube-proxy nat-output policy accept',
        'ip kube-proxy nat-postrouting rule masquerade (verdict accept)',
        'inet firewall out rule 9, which is gone (verdict continue)',
      ],
    })
  })

  it.each<[string, string, TracedRule]>([
    ['reject', 'a rule of nftables', metRule('kube-proxy x', { verdict: 'drop' }, 'ip daddr @x reject')],
    ['reject', 'a target of iptables', metRule('filter KUBE-SERVICES', { verdict: 'drop' }, 'xt target "REJECT"')],
    ['drop', 'a rule', metRule('firewall forward', { verdict: 'drop' }, 'tcp dport 3000 drop')],
    ['drop', 'a policy', metRule('filter FORWARD', { type: 'policy', verdict: undefined, policy: 'drop' })],
    ['untouched', 'a policy', metRule('kube-proxy x', { type: 'policy', verdict: undefined, policy: 'accept' })],
  ])('ends with %s by %s', (outcome, _, last) => {
    expect(followTrace([entry, metRule('kube-proxy x', dialled, 'return'), last], flow, OWN).outcome).toBe(outcome)
  })

  it('looks at its own flow alone, and knows nothing without it', () => {
    const other = metRule('kube-proxy x', { packet: { ...dialled.packet!, sourcePort: 1 } }, 'drop')
    expect(followTrace([other], flow, OWN)).toEqual({
      outcome: 'unknown',
      destination: null,
      lines: [],
      droppedBy: null,
    })
  })

  it('ends with the first packet, also when the next one has its number', () => {
    const first = metRule('kube-proxy nat-output', dialled, 'jump services')
    const next = metRule('kube-proxy filter-output', { ...dialled, verdict: 'drop' }, 'drop')
    const { lines, outcome } = followTrace([entry, first, entry, next], flow, OWN)
    expect([lines.length, outcome]).toEqual([1, 'untouched'])
  })

  it('follows a packet that IPVS has translated through the same hook', () => {
    const translated = to('10.244.1.3', 3000)
    const again = metRule(`${OWN} output`, { ...translated, type: 'policy', verdict: undefined, policy: 'accept' })
    const leaves = metRule('kube-proxy-ipvs nat-postrouting', translated, 'masquerade')
    const { outcome, destination } = followTrace([entry, again, leaves, entry], flow, OWN)
    expect([outcome, destination]).toEqual(['to', '10.244.1.3:3000'])
  })
})
