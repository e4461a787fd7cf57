import { describe, expect, it } from 'vitest'
import { parseTrace } from './trace.ts'

const flow = { source: '172.30.0.11', sourcePort: 44776, destination: '10.96.0.80', destinationPort: 80 }
const packet = (daddr: string, dport: number) =>
  `packet: oif "eth0" ip saddr 172.30.0.11 ip daddr ${daddr} ip dscp cs0 ip ecn not-ect ip ttl 64 ip id 1 ip length 60 tcp sport 44776 tcp dport ${dport} tcp flags == syn tcp window 64240 `

function trace(...lines: readonly string[]) {
  return parseTrace(lines.map((line) => `trace id a1 ip ${line}\n`).join(''), flow, 'kube-proxy-explain-7')
}

describe('parseTrace()', () => {
  it('follows a packet to where it is translated', () => {
    const traced = trace(
      `kube-proxy-explain-7 output ${packet('10.96.0.80', 80)}`,
      'kube-proxy-explain-7 output rule ip daddr 10.96.0.80 meta nftrace set 1 (verdict continue)',
      `kube-proxy nat-output ${packet('10.96.0.80', 80)}`,
      'kube-proxy nat-output rule jump services (verdict jump services)',
      `kube-proxy nat-postrouting ${packet('10.244.1.3', 3000)}`,
      'kube-proxy nat-postrouting rule jump masquerading (verdict jump masquerading)',
    )
    expect(traced).toEqual({
      outcome: 'to',
      destination: '10.244.1.3:3000',
      lines: [
        'ip kube-proxy nat-output rule jump services (verdict jump services)',
        'ip kube-proxy nat-postrouting rule jump masquerading (verdict jump masquerading)',
      ],
    })
  })

  it.each([
    ['kube-proxy service-endpoints-check rule ip daddr @x reject (verdict drop)', 'reject'],
    ['inet firewall forward rule tcp dport 3000 drop (verdict drop)', 'drop'],
    ['kube-proxy filter-output policy accept', 'untouched'],
  ])('ends with %s', (line, outcome) => {
    expect(trace(`kube-proxy x ${packet('10.96.0.80', 80)}`, line).outcome).toBe(outcome)
  })

  it('looks at its own flow alone, and knows nothing without it', () => {
    const other = packet('10.96.0.80', 80).replace('sport 44776', 'sport 1')
    expect(trace(`kube-proxy x ${other}`)).toEqual({ outcome: 'unknown', destination: null, lines: [] })
  })
})
