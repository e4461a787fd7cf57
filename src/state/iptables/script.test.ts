import { describe, expect, it } from 'vitest'
import { type Op, writeServiceChain } from './ops.ts'
import { planScript } from './script.ts'

const base = (chain: string, stage: 'helper' | 'entry', rule: string): Op => ({
  op: 'writeChain',
  table: 'nat',
  chain,
  stage,
  rules: [rule],
  owner: undefined,
})

describe('planScript()', () => {
  it('declares chains, deletes rules, inserts, appends, and deletes chains last', () => {
    const { text, lines, ownerOf } = planScript(
      [
        { op: 'deleteChain', table: 'nat', chain: 'KUBE-SEP-OLD' },
        { op: 'insertRule', table: 'nat', chain: 'KUBE-SERVICES', rule: '-j KUBE-SVC-A', owner: 'ns/a' },
        { op: 'deleteRule', table: 'nat', chain: 'KUBE-SERVICES', rule: '-j KUBE-SVC-B', owner: 'ns/b' },
        writeServiceChain('ns/a', 'KUBE-SVC-A', ['-j RETURN']),
      ],
      'nft',
    )
    expect(text.split('\n')).toEqual([
      '*nat',
      ':KUBE-SEP-OLD - [0:0]',
      ':KUBE-SVC-A - [0:0]',
      '-D KUBE-SERVICES -j KUBE-SVC-B',
      '-I KUBE-SERVICES -j KUBE-SVC-A',
      '-A KUBE-SVC-A -j RETURN',
      '-X KUBE-SEP-OLD',
      'COMMIT',
      '',
    ])
    expect(lines).toBe(8)
    expect([1, 2, 3, 4, 5, 6, 7, 8].map(ownerOf)).toEqual([
      undefined,
      undefined,
      'ns/a',
      'ns/b',
      'ns/a',
      'ns/a',
      undefined,
      undefined,
    ])
  })

  it('writes nothing when there is nothing to do', () => {
    expect(planScript([], 'nft').text).toBe('')
  })

  it('changes the filter table before the nat table', () => {
    const ops = (['nat', 'filter', 'mangle'] as const).map((table): Op => ({ op: 'deleteChain', table, chain: 'X' }))
    expect(planScript(ops, 'legacy').text.match(/^\*.*/gm)).toEqual(['*mangle', '*filter', '*nat'])
  })

  const many = Array.from({ length: 300 }, (_, i) => `ns/svc-${i}`)
  const large: Op[] = [
    base('KUBE-SERVICES', 'entry', '-j KUBE-NODEPORTS'),
    base('KUBE-MARK-MASQ', 'helper', '-j MARK --set-xmark 0x4000/0x4000'),
    ...many.flatMap((owner) => [
      writeServiceChain(owner, `KUBE-SVC-${owner}`, [`-j KUBE-SEP-${owner}`]),
      writeServiceChain(owner, `KUBE-SEP-${owner}`, ['-j KUBE-MARK-MASQ']),
    ]),
    ...many.map((owner): Op => ({ op: 'deleteChain', table: 'nat', chain: `KUBE-OLD-${owner}` })),
  ]

  it('spreads much over small sections for iptables-nft: helpers, services, entries, deletions', () => {
    const { text } = planScript(large, 'nft')
    const sections = text.split(/(?<=COMMIT\n)/)
    for (const section of sections) expect(section.match(/^:/gm)!.length).toBeLessThan(260)
    const declares = (chain: string) => sections.findIndex((section) => section.includes(`:${chain} `))
    const last = many.at(-1)!
    expect(declares('KUBE-MARK-MASQ')).toBe(0)
    expect(declares(`KUBE-SVC-${last}`)).toBeLessThan(declares('KUBE-SERVICES'))
    expect(declares('KUBE-SERVICES')).toBeLessThan(declares('KUBE-OLD-ns/svc-0'))
    for (const owner of many) expect(declares(`KUBE-SVC-${owner}`)).toBe(declares(`KUBE-SEP-${owner}`))
    // All are empty before the first is deleted, for they may jump to each other.
    const firstDeletion = sections.findIndex((section) => section.includes('-X '))
    for (const owner of many) expect(declares(`KUBE-OLD-${owner}`)).toBeLessThan(firstDeletion)
  })

  it('keeps everything of a table in one section for iptables-legacy', () => {
    expect(planScript(large, 'legacy').text.match(/^COMMIT$/gm)).toHaveLength(1)
  })

  it('counts the rules that it writes', () => {
    expect(planScript(large, 'nft').rules.get('nat')).toBe(602)
    expect(planScript(large, 'legacy').rules.get('nat')).toBe(602)
  })
})
