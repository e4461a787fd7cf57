import { expect, test } from 'vitest'
import { findForeignIptables } from './foreign-iptables.ts'
import { packetTo } from './packets.ts'

const endpoint = { address: '10.244.1.3', port: 3000, protocol: 'TCP', isUntranslated: false }
const inside = packetTo(endpoint, { source: '172.30.0.11', inputInterface: undefined })
const through = packetTo(endpoint, { source: '203.0.113.7', inputInterface: 'eth0' })

function find(...lines: readonly string[]) {
  return findForeignIptables(`${lines.join('\n')}\nCOMMIT\n`, 'iptables-nft', [inside, through])
}

test('a rule that drops is named with its table and chain, and the command that shows it', () => {
  expect(
    find(
      '*filter',
      ':FORWARD ACCEPT [0:0]',
      ':WALL - [0:0]',
      '-A FORWARD -j WALL',
      '-A WALL -p tcp -m tcp --dport 3000 -j DROP',
    ),
  ).toEqual([
    {
      table: 'filter of iptables-nft',
      chain: 'WALL',
      rule: '-p tcp -m tcp --dport 3000 -j DROP',
      verdict: 'drop',
      packet: 'a packet from 203.0.113.7 to 10.244.1.3:3000',
      next: 'iptables-nft -t filter -L WALL -n -v --line-numbers',
    },
  ])
})

test("a rule that sends it elsewhere is found, and those of a proxy are not another program's", () => {
  expect(
    find('*nat', ':OUTPUT ACCEPT [0:0]', '-A OUTPUT -p tcp -m tcp --dport 3000 -j DNAT --to-destination 10.0.0.1:1'),
  ).toMatchObject([{ chain: 'OUTPUT', verdict: 'translated' }])
  expect(
    find('*filter', ':OUTPUT ACCEPT [0:0]', ':KUBE-X - [0:0]', '-A OUTPUT -j KUBE-X', '-A KUBE-X -j DROP'),
  ).toEqual([])
})

test('a network policy is told from a firewall, and kube-router from a proxy', () => {
  const owners = (chain: string) =>
    find('*filter', ':FORWARD ACCEPT [0:0]', `:${chain} - [0:0]`, `-A FORWARD -j ${chain}`, `-A ${chain} -j DROP`).map(
      ({ owner }) => owner,
    )
  expect(owners('cali-tw-cali123')).toEqual([{ name: 'Calico', kind: 'network policy' }])
  expect(owners('KUBE-POD-FW-ABC')).toEqual([{ name: 'kube-router', kind: 'network policy' }])
  expect(owners('DOCKER-USER')).toEqual([{ name: 'Docker', kind: 'firewall' }])
  expect(owners('WALL')).toEqual([undefined])
})

test('a policy drops what no rule lets through, unless a rule that cannot be read might', () => {
  expect(find('*filter', ':FORWARD DROP [0:0]')).toMatchObject([{ chain: 'FORWARD', rule: 'policy DROP' }])
  expect(find('*filter', ':FORWARD DROP [0:0]', '-A FORWARD -p tcp -j ACCEPT')).toEqual([])
  expect(find('*filter', ':FORWARD DROP [0:0]', '-A FORWARD -m physdev --physdev-is-bridged -j ACCEPT')).toEqual([])
})
