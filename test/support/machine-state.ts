// All that a program could change in the network of a machine, as text: for tests that say that it changed nothing.

import type { Netns } from './netns/netns.ts'

/** What runs without the program's doing: counters, times, what packets add. */
const VOLATILE = /^net\.(netfilter\.nf_conntrack_count|ipv[46]\.(route\.|neigh\.)|ipv6\.conf\.\w+\.stable_secret)/

export function readMachineState(netns: Netns): Readonly<Record<string, string>> {
  const run = (command: string, ...args: string[]) => netns.run(command, args)
  // One program in the namespace, for /proc/sys/net shows that of the process which reads it. How many use a module is a matter
  // of all tests that run now.
  const settings = run(
    'sh',
    '-c',
    'find /proc/sys/net /sys/module/nf_* /sys/module/ip_* /sys/module/x_tables /sys/module/bridge -maxdepth 6 -type f ! -name refcnt -readable -exec grep -sH "" {} + || true',
  )
  return {
    nftables: run('nft', 'list', 'ruleset').replaceAll(/expires \S+|packets \d+ bytes \d+/g, ''),
    'iptables-legacy': run('sh', '-c', 'cat /proc/net/ip_tables_names /proc/net/ip6_tables_names 2>/dev/null || true'),
    ipsets: run('sh', '-c', 'ipset save 2>/dev/null || true'),
    ipvs: run('sh', '-c', 'cat /proc/net/ip_vs 2>/dev/null || true'),
    links: run('ip', '-d', 'link').replaceAll(/\w+_timer\s+\S+/g, ''),
    addresses: run('ip', '-o', 'addr').replaceAll(/(valid_lft|preferred_lft) \S+/g, ''),
    routes: run('sh', '-c', 'ip route show table all; ip -6 route show table all; ip rule; ip -6 rule'),
    modules: run('ls', '/sys/module'),
    settings: settings
      .split('\n')
      .filter((line) => !VOLATILE.test(line.replace('/proc/sys/', '').replaceAll('/', '.')))
      .sort()
      .join('\n'),
  }
}
