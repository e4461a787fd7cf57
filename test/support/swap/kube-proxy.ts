// kube-proxy itself, the Go program, on the node under test. Where it is not at hand (GO_KUBE_PROXY), the rules that it left in
// a run with the same objects stand in: test/e2e/fixtures/kube-proxy, which swap-recordings.test.ts compares and writes.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ensureCounter } from '../../../src/nfacct/counters.ts'
import { startProxy } from '../proxy-process.ts'
import type { Netns } from '../netns/netns.ts'
import type { Rig } from '../rig.ts'

export const kubeProxyModes = ['nftables', 'iptables', 'ipvs'] as const
export type KubeProxyMode = (typeof kubeProxyModes)[number]

/** Where the Go program is; undefined: recordings stand in. */
export const kubeProxyProgram = process.env['GO_KUBE_PROXY']

/** What a recording consists of: how it is read from a node, and how it is put into one. */
interface Part {
  readonly save: readonly [string, ...string[]]
  readonly restore: readonly [string, ...string[]]
}

const iptablesParts: Readonly<Record<string, Part>> = {
  'iptables.save': { save: ['iptables-save'], restore: ['iptables-restore', '--noflush'] },
  'ip6tables.save': { save: ['ip6tables-save'], restore: ['ip6tables-restore', '--noflush'] },
}

export const recordedParts: Readonly<Record<KubeProxyMode, Readonly<Record<string, Part>>>> = {
  nftables: { 'tables.nft': { save: ['nft', '--stateless', 'list', 'ruleset'], restore: ['nft', '-f', '-'] } },
  iptables: iptablesParts,
  // Sets before the rules that look into them, addresses before the servers that need them.
  ipvs: {
    'ipset.save': { save: ['ipset', 'save'], restore: ['ipset', '-exist', 'restore'] },
    ...iptablesParts,
    'addresses.ip': { save: ['ip', '-o', 'addr', 'show', 'dev', 'kube-ipvs0'], restore: ['ip', '-batch', '-'] },
    'servers.save': { save: ['ipvsadm', '-Sn'], restore: ['ipvsadm', '-R'] },
  },
}

/** What a node has after kube-proxy, as text that is the same every time. */
export function readRecording(netns: Netns, mode: KubeProxyMode): Record<string, string> {
  return Object.fromEntries(
    Object.entries(recordedParts[mode]).map(([name, { save }]) => {
      const [program, ...args] = save
      return [name, tidy(name, netns.run(program, args))]
    }),
  )
}

function tidy(name: string, text: string): string {
  if (name === 'addresses.ip') {
    const addresses = [...text.matchAll(/inet6? (\S+)/g)].map(([, address]) => `addr add ${address} dev kube-ipvs0`)
    return text === '' ? '' : `${['link add kube-ipvs0 type dummy', ...addresses.sort()].join('\n')}\n`
  }
  // Of services that are gone, until its next sync.
  if (name === 'tables.nft') return text.replaceAll(/^\tchain \S*\/svc-\d+\/\S* \{\n\t\}\n\n?/gm, '')
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/ \[\d+:\d+\]$/gm, ' [0:0]')
    .replaceAll(/ initval \S+/g, '')
    // Of the machine that it was recorded on.
    .replaceAll(/^.*\bfe80:.*\n/gm, '')
  // Servers and sets come in the order of a hash.
  return name === 'servers.save' || name === 'ipset.save' ? sortLines(lines) : lines
}

function sortLines(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '')
  const key = (line: string) => `${/^(create|-A) /.test(line) ? 0 : 1}${line}`
  return `${lines.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)).join('\n')}\n`
}

function readAddresses(netns: Netns): string {
  return tidy('addresses.ip', netns.run('sh', ['-c', 'ip -o addr show dev kube-ipvs0 2>/dev/null || true']))
}

export function recordingFile(mode: KubeProxyMode, part: string): string {
  return join(import.meta.dirname, '../../e2e/fixtures/kube-proxy', mode, part)
}

/** A kube-proxy at work; it ends as SIGTERM ends it, and leaves its rules. */
export interface KubeProxy {
  stop(): Promise<unknown>
}

/** Starts it, and waits until what was put into the cluster before is in force. */
export async function startKubeProxy(rig: Rig, mode: KubeProxyMode): Promise<KubeProxy> {
  if (kubeProxyProgram === undefined) {
    putRecording(rig.network.node, mode)
    return { stop: async () => {} }
  }
  const proxy = await startProxy({
    netns: rig.network.node,
    mode,
    kubeconfig: rig.cluster.kubeconfig,
    // It asks for a stream of initial events, which our test server does not have.
    command: [kubeProxyProgram, '--feature-gates=WatchListClient=false', '--kube-api-content-type=application/json'],
    args: mode === 'nftables' ? [] : [`--${mode}-min-sync-period=10ms`],
  })
  await rig.settled()
  return { stop: () => proxy.stop('SIGTERM') }
}

/** As kube-proxy itself does it on a node with rules: chains that it knows are written again, what it does not know stays. */
function putRecording(netns: Netns, mode: KubeProxyMode): void {
  // As kube-proxy sets them. Without the first, connections of IPVS are not tracked, and are not masqueraded.
  if (mode === 'ipvs') {
    for (const name of ['conntrack', 'expire_nodest_conn', 'expire_quiescent_template']) {
      netns.run('sh', ['-c', `echo 1 > /proc/sys/net/ipv4/vs/${name}`])
    }
  }
  for (const [name, { restore }] of Object.entries(recordedParts[mode])) {
    const [program, ...args] = restore
    netns.run(program, args, amend(netns, name, readFileSync(recordingFile(mode, name), 'utf8')))
  }
}

function amend(netns: Netns, name: string, recorded: string): string {
  if (name === 'tables.nft') {
    const present = new Set(
      ['ip', 'ip6'].flatMap((family) =>
        [...netns.run('nft', ['list', 'chains', family]).matchAll(/^\tchain (\S+) \{/gm)].map(
          ([, chain]) => `${family} ${chain}`,
        ),
      ),
    )
    const flushes = recorded.split(/^table /m).flatMap((table) => {
      const family = /^ip6?/.exec(table)?.[0] ?? ''
      return [...table.matchAll(/^\tchain (\S+) \{/gm)]
        .filter(([, chain]) => present.has(`${family} ${chain}`))
        .map(([, chain]) => `flush chain ${family} kube-proxy ${chain}\n`)
    })
    return flushes.join('') + recorded
  }
  if (name === 'servers.save') return linesBut(recorded, netns.run('ipvsadm', ['-Sn']))
  if (name === 'addresses.ip') return linesBut(recorded, readAddresses(netns))
  if (!/^ip6?tables\.save$/.test(name)) return recorded
  // Its jumps from the chains that every table has are added once.
  const present = netns.run(name.replace('.save', '-save'), [])
  return recorded
    .replaceAll(/^-A (?!KUBE-).*\n/gm, (rule) => (present.includes(rule) ? '' : rule))
    .replaceAll(/-m nfacct --nfacct-name +(\S+) /g, (match, counter: string) =>
      netns.enter(() => ensureCounter(counter)) ? match : '',
    )
}

function linesBut(text: string, present: string): string {
  const lines = new Set(present.split('\n'))
  return text
    .split('\n')
    .filter((line) => !lines.has(line))
    .join('\n')
}

/** Whether this kernel can have it, and the tools are there. */
export function whyNoKubeProxy(mode: KubeProxyMode): string | undefined {
  return mode === 'ipvs' && !existsSync('/proc/net/ip_vs') ? 'this kernel has no IPVS' : undefined
}
