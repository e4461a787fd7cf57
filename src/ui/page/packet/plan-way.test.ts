import { describe, expect, it } from 'vitest'
import type { Explanation } from '../../../diagnose/explain/explanation.ts'
import { planBeside } from './compare.ts'
import { chooseWay, planWay } from './plan-way.ts'

const step = { comment: null, found: [], packets: null, bytes: null }
const steps = (backend: string) => [
  { ...step, hook: 'output', place: 'kube-proxy nat-output', rule: 'jump services' },
  {
    ...step,
    hook: 'output',
    place: 'kube-proxy services',
    rule: 'dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 2 map @service-endpoints',
    found: [`service-endpoints: ${backend}`],
  },
  {
    ...step,
    hook: 'output',
    place: 'kube-proxy affinity-output',
    rule: 'ct state new ct status dnat jump affinity-record',
  },
  {
    ...step,
    hook: 'postrouting',
    place: 'kube-proxy masquerading',
    rule: 'meta mark & 0x4000 != 0 masquerade fully-random',
  },
]
const way = (destination: string) =>
  ({ outcome: 'to', destination, masqueraded: true, steps: steps(destination) }) as const
const explanation: Explanation = {
  version: 1,
  headline: 'A connection is sent.',
  agreement: 'agrees',
  question: {
    from: 'the node itself',
    source: '172.30.0.11',
    to: 'default/whoami',
    destination: '10.96.0.20',
    port: 3000,
    protocol: 'TCP',
    asked: '',
    hasObjects: true,
    node: 'node-1',
    mode: 'nftables',
    assumed: [],
  },
  outcome: 'to',
  because: '',
  client: { kind: 'node', because: '' },
  frontend: null,
  misses: [],
  sources: null,
  policy: null,
  backends: [],
  affinity: null,
  atConnect: null,
  masquerade: null,
  problems: [],
  kernel: { what: '', error: null, ways: [way('10.244.1.3:3000'), way('10.244.2.3:3000')], differences: [] },
  sent: null,
}
const sent: Explanation['sent'] = {
  from: '172.30.0.11:45089',
  answer: 'connected',
  trace: [
    'ip kube-proxy nat-output rule jump services (verdict jump services)',
    'ip kube-proxy services rule dnat ip to ip daddr (verdict accept)',
    'ip kube-proxy filter-output policy accept',
    'ip kube-proxy masquerading rule meta mark & 0x4000 != 0 masquerade fully-random (verdict accept)',
  ],
  outcome: 'to',
  destination: '10.244.2.3:3000',
  droppedBy: null,
  drops: [],
  dropsError: null,
  differences: [],
}

describe('the way of a packet', () => {
  it('is shown hook by hook, with what becomes of the addresses', () => {
    const plan = planWay(explanation, 0)!
    expect(plan.bands.map(({ hook }) => hook)).toEqual(['output', 'postrouting'])
    expect(plan.bands.flatMap(({ steps }) => steps.map(({ translation }) => translation))).toEqual([
      null,
      'destination 10.96.0.20:3000 becomes 10.244.1.3:3000',
      null,
      'source 172.30.0.11 becomes an address of node-1',
    ])
    expect(plan.end).toBe('arrives at 10.244.1.3:3000, masqueraded')
    expect(plan.back).toHaveLength(3)
  })

  it('is the one that the sent packet took, with the trace beside it', () => {
    const whole = { ...explanation, sent }
    expect(chooseWay(whole)).toBe(1)
    const [output, postrouting] = planWay(whole, 1)!.bands
    expect(output!.steps.map(({ traced }) => traced)).toEqual(['verdict jump services', 'verdict accept', null])
    expect(output!.traced).toEqual(['ip kube-proxy filter-output policy accept'])
    expect(postrouting!.steps[0]!.traced).toBe('verdict accept')
  })

  it('that was said stands beside what was seen', () => {
    expect(planBeside(explanation).map(({ what, seen }) => [what, seen])).toEqual([
      ['verdict', null],
      ['destination', null],
      ['rules', 'they do'],
    ])
    const rows = planBeside({ ...explanation, sent })
    expect(rows.map(({ what, seen, agrees }) => [what, seen, agrees])).toEqual([
      ['verdict', 'sent to an endpoint', true],
      ['destination', '10.244.2.3:3000', true],
      ['the client sees', 'connected', null],
      ['rules', 'they do', true],
    ])
    const elsewhere = planBeside({ ...explanation, sent: { ...sent, destination: '10.9.9.9:3000' } })
    expect(elsewhere[1]).toMatchObject({ agrees: false })
  })
})
