import { describe, expect, it, test } from 'vitest'
import { doubtOf, factOf, findForeign } from './foreign.ts'
import { parseForeignIptables } from './foreign-iptables.ts'
import { fromNode, fromPod, isOfNode } from './foreign-samples.ts'

const saved = (...lines: readonly string[]) => `${lines.join('\n')}\nCOMMIT\n`
const find = (text: string, packets = fromPod) =>
  findForeign(parseForeignIptables(text, 'iptables-nft'), packets, { isLocalAddress: isOfNode })

/** `drop`, `maybe drop`, ... */
function ends(text: string, packets = fromPod): string[] {
  const { found, doubts } = find(text, packets)
  return [...found.map(({ verdict }) => verdict), ...doubts.map(({ verdict }) => `maybe ${verdict}`)]
}

test('a rule that drops is named with its table and chain, and the command that shows it', () => {
  const { found } = find(
    saved(
      '*filter',
      ':FORWARD ACCEPT [0:0]',
      ':WALL - [0:0]',
      '-A FORWARD -j WALL',
      '-A WALL -p tcp -m tcp --dport 3000 -j DROP',
    ),
  )
  expect(found.map((end) => factOf(end, end.rule))).toEqual([
    {
      table: 'filter of iptables-nft',
      chain: 'WALL',
      rule: '-p tcp -m tcp --dport 3000 -j DROP',
      verdict: 'drop',
      packet: 'a packet from 10.244.1.9 to 10.244.2.3:3000',
      next: 'iptables-nft -t filter -L WALL -n -v --line-numbers',
    },
  ])
})

describe('conditions', () => {
  it.each<[string, string[]]>([
    ['-p tcp -m tcp --dport 2000:4000', ['drop']],
    ['-p tcp -m tcp ! --dport 3000', []],
    ['-p tcp -m multiport --dports 80,3000', ['drop']],
    ['-p udp -m udp --dport 3000', []],
    ['! -s 10.244.0.0/16', []],
    ['-d 10.244.2.3/32 -o eth+', ['drop']],
    ['-i eth0 -m conntrack --ctstate NEW', []],
    ['-m conntrack ! --ctstate RELATED,ESTABLISHED', ['drop']],
    ['-m conntrack --ctstate DNAT', ['drop']],
    ['-m conntrack --ctorigdst 10.96.0.80', ['drop']],
    ['-m conntrack --ctorigdst 10.96.0.0/12 --ctorigdstport 81', []],
    ['-m comment --comment "not -s 1.2.3.4" -m mark --mark 0x0/0xf', ['drop']],
    ['-m mark --mark 0x1', []],
    ['-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN', ['drop']],
    ['-p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG NONE', []],
    ['-m addrtype --dst-type LOCAL', []],
    ['-m addrtype --dst-type BROADCAST', []],
    ['-m set --match-set bad src', ['maybe drop']],
    ['-m limit --limit 1/sec', ['maybe drop']],
    ['-m physdev --physdev-is-bridged', ['maybe drop']],
    ['-p icmp -m icmp --icmp-type 8', []],
    ['-m rpfilter --loose --validmark --invert', ['maybe drop']],
  ])('%s', (condition, expected) => {
    // The answer is let through first, so that one packet is left.
    const first = '-A FORWARD -m conntrack --ctdir REPLY -j ACCEPT'
    expect(ends(saved('*filter', ':FORWARD ACCEPT [0:0]', first, `-A FORWARD ${condition} -j DROP`))).toEqual(expected)
  })
})

test('tables before the translation see the service, and all tables count', () => {
  expect(ends(saved('*raw', ':PREROUTING ACCEPT [0:0]', '-A PREROUTING -d 10.96.0.0/12 -j DROP'))).toEqual(['drop'])
  expect(ends(saved('*raw', ':OUTPUT ACCEPT [0:0]', '-A OUTPUT -d 10.96.0.0/12 -j CT --notrack'), fromNode)).toEqual([
    'untracked',
  ])
  expect(ends(saved('*mangle', ':FORWARD ACCEPT [0:0]', '-A FORWARD -d 10.244.0.0/16 -j DROP'))).toEqual(['drop'])
})

test("a rule that sends it elsewhere is found, and those of a proxy are not another program's", () => {
  const elsewhere = '-A OUTPUT -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:1'
  expect(ends(saved('*nat', ':OUTPUT ACCEPT [0:0]', elsewhere), fromNode)).toEqual(['translated'])
  expect(
    ends(
      saved('*filter', ':OUTPUT ACCEPT [0:0]', ':KUBE-X - [0:0]', '-A OUTPUT -j KUBE-X', '-A KUBE-X -j DROP'),
      fromNode,
    ),
  ).toEqual([])
})

test('chains of a kube-proxy count where the proxy of the node has none of iptables', () => {
  const text = saved(
    '*nat',
    ':OUTPUT ACCEPT [0:0]',
    ':KUBE-SERVICES - [0:0]',
    '-A OUTPUT -j KUBE-SERVICES',
    '-A KUBE-SERVICES -d 10.96.0.80/32 -p tcp -j DNAT --to-destination 10.244.9.9:3000',
  )
  const left = parseForeignIptables(text, 'iptables-legacy').map((table) => ({ ...table, hasNoProxy: true }))
  expect(ends(text, fromNode)).toEqual([])
  // Which of two translates a packet is not known.
  const { found, doubts } = findForeign(left, fromNode, { isLocalAddress: isOfNode })
  expect(found).toEqual([])
  expect(doubts.map((end) => doubtOf(end, end.rule).what)).toEqual([
    expect.stringMatching(/chain KUBE-SERVICES, of another kube-proxy, may redirect/),
  ])
})

test('targets that change a packet', () => {
  const at = (table: string, chain: string, target: string) =>
    ends(saved(`*${table}`, `:${chain} ACCEPT [0:0]`, `-A ${chain} -d 10.244.2.0/24 -j ${target}`))
  expect(at('mangle', 'POSTROUTING', 'TTL --ttl-set 1')).toEqual(['maybe shortened'])
  expect(at('mangle', 'POSTROUTING', 'TTL --ttl-set 64')).toEqual([])
  expect(at('raw', 'PREROUTING', 'CT --zone 5')).toEqual([])
  expect(at('nat', 'POSTROUTING', 'SNAT --to-source 192.0.2.9-192.0.2.10')).toEqual(['maybe readdressed'])
  expect(at('nat', 'POSTROUTING', 'SNAT --to-source 172.30.0.11:1024-2048')).toEqual([])
})

test('a network policy is told from a firewall, and kube-router from a proxy', () => {
  const owner = (chain: string) =>
    find(
      saved('*filter', ':FORWARD ACCEPT [0:0]', `:${chain} - [0:0]`, `-A FORWARD -j ${chain}`, `-A ${chain} -j DROP`),
    ).found[0]?.owner
  expect(owner('cali-tw-cali123')).toEqual({ name: 'Calico', kind: 'network policy' })
  expect(owner('KUBE-POD-FW-ABC')).toEqual({ name: 'kube-router', kind: 'network policy' })
  expect(owner('DOCKER-USER')).toEqual({ name: 'Docker', kind: 'firewall' })
  expect(owner('WALL')).toBeUndefined()
})

test('a policy drops what no rule lets through, unless a rule that cannot be read might', () => {
  expect(ends(saved('*filter', ':FORWARD DROP [0:0]'))).toEqual(['drop'])
  expect(ends(saved('*filter', ':FORWARD DROP [0:0]', '-A FORWARD -p tcp -j ACCEPT'))).toEqual([])
  expect(ends(saved('*filter', ':FORWARD DROP [0:0]', '-A FORWARD -m physdev --physdev-is-bridged -j ACCEPT'))).toEqual(
    ['maybe drop'],
  )
})

test('Docker drops what it does not know; ufw lets established connections pass', () => {
  const docker = [
    '*filter',
    ':FORWARD DROP [0:0]',
    ':DOCKER-USER - [0:0]',
    ':DOCKER-FORWARD - [0:0]',
    '-A FORWARD -j DOCKER-USER',
    '-A FORWARD -j DOCKER-FORWARD',
    '-A DOCKER-FORWARD -i docker0 -j ACCEPT',
    '-A DOCKER-USER -j RETURN',
  ]
  expect(ends(saved(...docker))).toEqual(['drop'])
  const ufw = [
    '*filter',
    ':INPUT DROP [0:0]',
    ':ufw-before-input - [0:0]',
    '-A INPUT -j ufw-before-input',
    '-A ufw-before-input -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT',
  ]
  expect(ends(saved(...ufw), fromNode)).toEqual([])
  expect(ends(saved(...ufw.slice(0, 4)), fromNode)).toEqual(['drop'])
})
