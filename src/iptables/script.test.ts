import { describe, expect, it } from 'vitest'
import { type Op, writeServiceChain } from './ops.ts'
import { type Backend, Script } from './script.ts'

function write(ops: readonly Op[], backend: Backend): { script: Script; text: string } {
  const script = new Script(ops, backend)
  return { script, text: [...script.text()].join('') }
}

const base = (chain: string, stage: 'helper' | 'entry', rule: string): Op => ({
  op: 'writeChain',
  table: 'nat',
  chain,
  stage,
  rules: [rule],
  owner: undefined,
})

describe('Script', () => {
  it('declares chains, deletes rules, inserts, appends, and deletes chains last', () => {
    const { script, text } = write(
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
    expect(script.lines).toBe(8)
    expect([1, 2, 3, 4, 5, 6, 7, 8].map((line) => script.ownerOf(line))).toEqual([
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
    expect(write([], 'nft').text).toBe('')
  })

  it('changes the filter table before the nat table', () => {
    const ops = (['nat', 'filter', 'mangle'] as const).map((table): Op => ({ op: 'deleteChain', table, chain: 'X' }))
    expect(write(ops, 'legacy').text.match(/^\*.*/gm)).toEqual(['*mangle', '*filter', '*nat'])
  })

  const many = Array.from({ length: 300 }, (_, i) => `ns/svc-${i}`)
  const large: Op[] = [
    base('KUBE-MARK-MASQ', 'helper', '-j MARK --set-xmark 0x4000/0x4000'),
    ...many.flatMap((owner) => [
      writeServiceChain(owner, `KUBE-SVC-${owner}`, [`-j KUBE-SEP-${owner}`]),
      writeServiceChain(owner, `KUBE-SEP-${owner}`, ['-j KUBE-MARK-MASQ']),
    ]),
    base('KUBE-SERVICES', 'entry', '-j RETURN'),
    ...many.map((owner): Op => ({ op: 'deleteChain', table: 'nat', chain: `KUBE-OLD-${owner}` })),
  ]

  it('spreads much over small sections for iptables-nft: helpers, services, entries, deletions', () => {
    const { text } = write(large, 'nft')
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
    expect(write(large, 'legacy').text.match(/^COMMIT$/gm)).toHaveLength(1)
  })

  it('is made while it is taken', () => {
    let made = 0
    const script = new Script(
      (function* () {
        for (const op of large) {
          made++
          yield op
        }
      })(),
      'legacy',
    )
    const [first] = script.text()
    expect(first).toContain('KUBE-MARK-MASQ')
    expect(made).toBeLessThan(300)
  })

  it.each(['nft', 'legacy'] as const)(
    'has every chain before the rules that jump to it, for iptables-%s',
    (backend) => {
      const declared = new Set<string>()
      for (const line of write(large, backend).text.split('\n')) {
        if (line.startsWith(':')) declared.add(line.slice(1, line.indexOf(' ')))
        const target = /-j (KUBE-\S+)/.exec(line)?.[1]
        if (target !== undefined) expect(declared.has(target), line).toBe(true)
      }
    },
  )

  it('counts the rules that it writes', () => {
    expect(write(large, 'nft').script.rules.get('nat')).toBe(602)
    expect(write(large, 'legacy').script.rules.get('nat')).toBe(602)
  })
})
