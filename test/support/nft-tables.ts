// What nft sees in a namespace.

import { setTimeout as sleep } from 'node:timers/promises'
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

/** Both tables of the proxy, without its affinities. */
export function printProxyTables(netns: Netns): string {
  return listTables(netns)
    .filter((table) => table.endsWith(' kube-proxy'))
    .map((table) => printTable(netns, table))
    .join('\n')
}

/** Records every change to any table until it is told to stop. */
export async function watchTables(netns: Netns): Promise<{ stop(): Promise<string[]> }> {
  const monitor = netns.spawn(['nft', 'monitor'], { stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  monitor.stdout?.on('data', (bytes: Buffer) => (text += bytes.toString()))
  // The monitor says nothing when it is ready: a table of our own tells.
  while (!text.includes('watch-ready')) {
    netns.run('nft', ['-f', '-'], 'add table ip watch-ready\ndelete table ip watch-ready\n')
    await sleep(10)
  }
  return {
    async stop() {
      netns.run('nft', ['-f', '-'], 'add table ip watch-done\ndelete table ip watch-done\n')
      while (!text.includes('watch-done')) await sleep(5)
      monitor.kill('SIGKILL')
      return text.split('\n').filter((line) => line !== '' && !line.startsWith('#') && !/watch-(ready|done)/.test(line))
    },
  }
}
