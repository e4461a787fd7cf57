// What nft sees in a namespace.

import { eventually } from './eventually.ts'
import type { Netns } from './netns/netns.ts'

/** The names of all tables: `ip kube-proxy`. */
export function listTables(netns: Netns): string[] {
  return netns
    .run('nft', ['list', 'tables'])
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.replace(/^table /, ''))
}

/** A table as nft prints it, without what changes by itself: counters, and elements that packets added. */
export function printTable(netns: Netns, table: string): string {
  return netns.run('nft', ['--stateless', 'list', 'table', ...table.split(' ')])
}

/**
 * Both tables of the proxy, one line per chain, rule, set and element, in an order that does not depend on history, and
 * without what packets add: elements of dynamic sets.
 */
export function printProxyTables(netns: Netns, name?: string): string {
  return listTables(netns)
    .filter((table) => (name === undefined ? / kube-proxy(-[a-z]+)?$/.test(table) : table.endsWith(` ${name}`)))
    .toSorted()
    .flatMap((table) => itemsOf(netns, table))
    .join('\n')
}

function itemsOf(netns: Netns, table: string): string[] {
  const { nftables } = JSON.parse(netns.run('nft', ['-j', 'list', 'table', ...table.split(' ')])) as NftJson
  const named: string[] = []
  const rules: string[] = []
  for (const item of nftables) {
    const [kind, content] = Object.entries(item)[0] ?? []
    if (kind === undefined || content === undefined || kind === 'metainfo') continue
    const { handle: _handle, elem = [], ...rest } = content
    const line = `${table} ${kind} ${JSON.stringify(rest)}`
    const kept = rest.flags?.includes('dynamic') === true ? [] : elem
    if (kind === 'rule') rules.push(line)
    else named.push(line, ...kept.map((element) => `${table} ${rest.name} ${JSON.stringify(element)}`))
  }
  // The order of rules means something, the order of everything else does not.
  return [
    ...named.toSorted(),
    ...rules.toSorted((a, b) => (chainOf(a) < chainOf(b) ? -1 : chainOf(a) > chainOf(b) ? 1 : 0)),
  ]
}

interface NftJson {
  nftables: Record<string, { name?: string; handle?: number; flags?: string[]; elem?: unknown[] }>[]
}

function chainOf(rule: string): string {
  return /"chain":"([^"]*)"/.exec(rule)?.[1] ?? ''
}

/** Records every change to any table until it is told to stop. */
export async function watchTables(netns: Netns): Promise<{ stop(): Promise<string[]> }> {
  const monitor = netns.spawn(['nft', 'monitor'], { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  monitor.stdout?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  monitor.stderr?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  // The monitor does not say when it is ready, nor when it has told everything: a table of our own tells.
  const seesTable = (name: string) =>
    eventually(`nft monitor tells of ${name}`, () => {
      if (monitor.exitCode !== null || monitor.signalCode !== null)
        return { fatal: `it has ended: ${text.slice(-500)}` }
      if (text.includes(name)) return undefined
      netns.run('nft', ['-f', '-'], `add table ip ${name}\ndelete table ip ${name}\n`)
      return `it told ${text.length} bytes`
    })
  await seesTable('watch-ready')
  return {
    async stop() {
      await seesTable('watch-done')
      monitor.kill('SIGKILL')
      return text.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !/watch-(ready|done)/.test(line))
    },
  }
}
