// Every shape of rule: what nft makes of the text is what we write, and what we write is what nft lists.

import { asBytes } from '../../src/lib/ip.ts'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import type { Chain, Expression } from '../../src/nftables/types.ts'
import { compileTableWithNft, compileWithNft, formatLikeNft } from '../support/nft-debug.ts'
import { isRoot, listJsonWithNft, listWithNft, loadWithNft, nft, opsToCreate, withoutHandles } from '../support/nft.ts'
import { makeSet } from '../../src/nftables/make-set.ts'

const SETS = `
  map endpoints { typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport; }
  map nodeport-endpoints { typeof meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport; }
  map affinity { type ipv4_addr : ipv4_addr . inet_service; flags dynamic,timeout; size 1000; }
  set clients { type ipv4_addr; flags dynamic; size 65535; }
  set rates { type ipv4_addr; flags dynamic,timeout; size 65535; }
  map jumps { type ipv4_addr . inet_proto . inet_service : verdict; }
  set count-3 { type ipv4_addr . inet_proto . inet_service; }
  set cluster-ips { type ipv4_addr; }
  set pod-cidrs { type ipv4_addr; flags interval; }
  set allowed { type ipv4_addr . inet_proto . inet_service . ipv4_addr; flags interval; }
  set hairpin { type ipv4_addr . ipv4_addr . inet_proto . inet_service; }
  set node-ports { type inet_proto . inet_service; }
  chain c { }
`

const NAT_PREROUTING = `
  ip daddr . meta l4proto . th dport @count-3 dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 3 map @endpoints
  meta l4proto . th dport @node-ports dnat ip to meta l4proto . th dport . numgen random mod 10 map @nodeport-endpoints
  ip daddr . meta l4proto . th dport @count-3 dnat ip to ip daddr . meta l4proto . th dport . jhash ip saddr mod 8191 seed 0x6b756265 map @endpoints
  ip daddr . meta l4proto . th dport @count-3 dnat ip to ip daddr . meta l4proto . th dport . jhash ip saddr . th sport mod 8191 seed 0x1 map @endpoints
  meta l4proto . th dport @node-ports dnat ip to meta l4proto . th dport . jhash ip saddr . th sport mod 32749 seed 0x6b756265 map @nodeport-endpoints
  meta l4proto tcp dnat ip to ip saddr map @affinity
  ip daddr . meta l4proto . th dport vmap @jumps
  ip daddr @cluster-ips ip saddr != @pod-cidrs meta mark set meta mark or 0x4000 comment "masquerade"
  ip daddr . meta l4proto . th dport . ip saddr @allowed return
  iifname != "cni0" return
  iifname "veth*" return
  iifname "cali12345678*" return
  fib daddr type local ip daddr != 127.0.0.0/8 meta l4proto . th dport @node-ports return
  fib saddr type local goto c
  ct state new jump c
  meta l4proto tcp redirect to :1234
  meta l4proto tcp ip daddr 10.96.0.10 tcp dport 53 dnat ip to 10.0.0.1:5353
  dnat ip to 10.0.0.1
  add @clients { ip saddr ct count over 5 } goto c
  update @rates { ip saddr timeout 2s limit rate over 3/second burst 3 packets } goto c
  ct count over 8 goto c
  goto c
`

const NAT_POSTROUTING = `
  mark and 0x4000 != 0 mark set mark xor 0x4000 masquerade fully-random
  ct status dnat ip saddr . ip daddr . meta l4proto . th dport @hairpin masquerade fully-random
  masquerade
`

const FILTER = `
  meta l4proto tcp ct original ip daddr . meta l4proto . ct original proto-dst vmap @jumps
  meta l4proto udp ct original ip daddr . meta l4proto . ct original proto-dst @count-3 return
  meta l4proto tcp update @affinity { ip saddr timeout 3h : ip daddr . th dport }
  meta l4proto tcp add @affinity { ip saddr timeout 10s : ip daddr . th dport }
  ip daddr @cluster-ips reject
  ip daddr @cluster-ips reject with icmp type admin-prohibited
  meta l4proto tcp reject with tcp reset
  counter packets 3 bytes 180
  ct state new,established accept
  meta mark 0x4000 drop
  return
  drop
`

const IPV4 = { SETS, NAT_PREROUTING, NAT_POSTROUTING, FILTER }

/** Without the lines that nft 1.0.6 lists but cannot compile: it runs out of registers by its own count. */
function asIpv6(text: string): string {
  return text
    .split('\n')
    .filter((line) => !line.includes('@affinity {'))
    .join('\n')
    .replaceAll('icmp type', 'icmpv6 type')
    .replaceAll(/\bip (saddr|daddr|to)\b/g, 'ip6 $1')
    .replaceAll('ipv4_addr', 'ipv6_addr')
    .replaceAll('127.0.0.0/8', '::1')
    .replaceAll(/10\.0\.0\.1:/g, '[fd00::1]:')
    .replaceAll(/10\.(\d+)\.0\.(\d+)/g, 'fd00:$1::$2')
}

const IPV6 = Object.fromEntries(Object.entries(IPV4).map(([name, text]) => [name, asIpv6(text)])) as typeof IPV4

describe.skipIf(!isRoot).each([
  ['ip', IPV4],
  ['ip6', IPV6],
] as const)('rules of family %s in the kernel (needs root)', (family, text) => {
  const table = `table ${family} t {${text.SETS}
    chain prerouting { type nat hook prerouting priority -100; ${text.NAT_PREROUTING} }
    chain postrouting { type nat hook postrouting priority 100; ${text.NAT_POSTROUTING} }
    chain filter { type filter hook forward priority 0; ${text.FILTER} }
  }`
  let driver: NftablesDriver

  beforeAll(() => {
    unshareNetwork()
    driver = new NftablesDriver({ family, table: 't' })
    return () => driver.close()
  })

  afterEach(() => {
    nft('flush', 'ruleset')
  })

  it('that nft wrote are read as nft compiles them, without one that is unknown', () => {
    loadWithNft(table)
    const compiled = compileTableWithNft(table)
    const read = driver.read()!
    for (const [chain, rules] of compiled) {
      const expressions = read.chains.get(chain)!.rules.map((rule) => rule.expressions)
      expect(expressions, chain).toEqual(rules)
      expect(rules.flat().filter(({ kind }) => kind === 'unknown')).toEqual([])
    }
    expect(compiled.size).toBe(3)
  })

  it('that we wrote are listed like those that nft wrote, and read as we wrote them', () => {
    loadWithNft(table)
    const [read, listed, json] = [driver.read()!, listWithNft(), listJsonWithNft()]
    nft('flush', 'ruleset')
    driver.apply(opsToCreate(read))
    expect(listWithNft()).toBe(listed)
    expect(listJsonWithNft()).toEqual(json)
    expect(withoutHandles(driver.read())).toEqual(withoutHandles(read))
  })
})

describe.skipIf(!isRoot)('rules that we do not know (need root)', () => {
  it('are read as unknown expressions, and change nothing around them', () => {
    unshareNetwork()
    loadWithNft('add table ip t\nadd chain ip t c\nadd rule ip t c quota 3 mbytes ip daddr { 10.0.0.1, 10.0.0.2 } drop')
    const driver = new NftablesDriver({ family: 'ip', table: 't' })
    const table = driver.read()!
    const kinds = table.chains.get('c')!.rules[0]!.expressions.map(({ kind }) => kind)
    expect(kinds).toContain('unknown')
    expect(kinds.at(-1)).toBe('verdict')
    // The anonymous set belongs to the rule and goes with it.
    expect([...table.sets]).toEqual([])
    driver.close()
  })
})

describe.skipIf(!isRoot)('a rule that remembers IPv6 clients (needs root)', () => {
  it('is listed by nft, which cannot compile it', () => {
    unshareNetwork()
    const driver = new NftablesDriver({ family: 'ip6', table: 't' })
    const set = makeSet('affinity', ['ipv6_addr'], { data: ['ipv6_addr', 'inet_service'], dynamic: true, size: 1000 })
    const expressions: Expression[] = [
      { kind: 'meta', key: 'l4proto', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: asBytes('\x06') },
      { kind: 'payload', base: 'network', offset: 8, length: 16, dreg: 0 },
      { kind: 'payload', base: 'network', offset: 24, length: 16, dreg: 4 },
      { kind: 'payload', base: 'transport', offset: 2, length: 2, dreg: 8 },
      { kind: 'dynset', op: 'update', set: 'affinity', keyReg: 0, dataReg: 4, timeoutMs: 10_800_000 },
    ]
    const chain: Chain = { name: 'c', comment: undefined, hook: undefined, rules: [] }
    driver.apply([
      { op: 'addTable', comment: undefined },
      { op: 'addSet', set },
      { op: 'addChain', chain },
      { op: 'addRule', chain: 'c', rule: { text: '', comment: undefined, expressions } },
    ])
    expect(listWithNft()).toContain('update @affinity { ip6 saddr timeout 3h : ip6 daddr . tcp dport }')
    expect(driver.read()!.chains.get('c')!.rules[0]!.expressions).toEqual(expressions)
    driver.close()
  })
})

describe.skipIf(!isRoot)('compileWithNft() (needs root)', () => {
  it('gives the expressions of a rule', () => {
    const expected: Expression[] = [
      { kind: 'meta', key: 'iifname', dreg: 0 },
      { kind: 'cmp', op: 'eq', sreg: 0, value: asBytes('veth') },
      { kind: 'verdict', code: 'goto', chain: 'c' },
    ]
    expect(compileWithNft('iifname "veth*" goto c', 'chain c { }')).toEqual(expected)
    expect(expected.map(formatLikeNft)).toEqual([
      '[ meta load iifname => reg 1 ]',
      '[ cmp eq reg 1 0x68746576 ]',
      '[ immediate reg 0 goto -> c ]',
    ])
  })

  it('throws what nft says about a rule that it does not accept', () => {
    expect(() => compileWithNft('no such words')).toThrow(/syntax error/)
  })
})
