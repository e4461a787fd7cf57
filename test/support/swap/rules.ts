// All that a proxy puts into a node, as lines that do not depend on history: to say what stays behind.

import { existsSync } from 'node:fs'
import { printProxyTables } from '../nft-tables.ts'
import type { Netns } from '../netns/netns.ts'

const PROGRAMS = ['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy'] as const

export function readRules(netns: Netns): string[] {
  return [
    // A set that is there when a proxy adds it keeps the comment that it has.
    ...prefixed('nft', printProxyTables(netns).replaceAll(/(?<= set .*),"comment":"[^"]*"/g, '')),
    ...PROGRAMS.flatMap((name) => chains(netns, name)),
    ...(existsSync('/proc/net/ip_vs') ? ipvs(netns) : []),
    // A link has another such address each time it is made.
  ].filter((line) => !isNote(line) && !/\bfe80::/.test(line))
}

/** What is left of the first that the second does not have, and the other way round. */
export function compareRules(
  before: readonly string[],
  after: readonly string[],
): { readonly gone: readonly string[]; readonly added: readonly string[] } {
  const [old, now] = [new Set(before), new Set(after)]
  return { gone: before.filter((line) => !now.has(line)), added: after.filter((line) => !old.has(line)) }
}

/** Empty chains in which proxies note something: that a setting was off, that the ruleset was not flushed. */
function isNote(line: string): boolean {
  return /KUBE-PROXY-(LOCALNET|CANARY)|KUBE-KUBELET-CANARY/.test(line)
}

/**
 * Rules keep their order within a chain, but for KUBE-SERVICES and KUBE-NODEPORTS, where each is of another address or port, and the
 * chains that every table has, where jumps are added in front of what is there. Chains have no order.
 */
function chains(netns: Netns, program: string): string[] {
  const text = netns.run(`${program}-save`, [])
  const tables = text.split(/^(?=\*)/m).filter((part) => part.startsWith('*'))
  return tables.flatMap((part) => {
    const [table = '', ...lines] = part.split('\n').map((line) => line.replace(/ \[\d+:\d+\]$/, ''))
    const counts = new Map<string, number>()
    return (
      lines
        // The chains that every table has are empty when no program uses them.
        .filter((line) => /^-|^:.* -$/.test(line))
        .map((line) => {
          const [, chain = ''] = /^(?::|-A )(\S+)/.exec(line) ?? []
          const nth = /^KUBE-(?!(SERVICES|NODEPORTS)$)/.test(chain) ? (counts.get(chain) ?? 0) : 0
          counts.set(chain, nth + 1)
          return `${program} ${table} ${chain} ${nth}: ${line}`
        })
    )
  })
}

/** Virtual servers, sets of ipset, and the addresses of services. */
function ipvs(netns: Netns): string[] {
  const addresses = netns.run('sh', ['-c', 'ip -o addr show dev kube-ipvs0 2>/dev/null || true'])
  return [
    ...prefixed('ipvs', netns.run('ipvsadm', ['-Sn'])),
    ...prefixed('ipset', netns.run('ipset', ['save']).replaceAll(/ (initval|hashsize|bucketsize) \S+/g, '')),
    ...prefixed('address', addresses.replaceAll(/^.*(inet6? \S+).*$/gm, '$1')),
  ]
}

function prefixed(what: string, text: string): string[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `${what} ${line}`)
}
