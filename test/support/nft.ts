// The nft program as an oracle, in the network namespace of the test.

import { execFileSync } from 'node:child_process'
import type { Chain, Op, Table } from '../../src/nftables/types.ts'

/** Whether this process may create network namespaces and change nftables in them. */
export const isRoot: boolean = process.getuid?.() === 0

export function nft(...args: string[]): string {
  return execFileSync('nft', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

export function loadWithNft(ruleset: string): void {
  execFileSync('nft', ['-f', '-'], { input: ruleset, stdio: ['pipe', 'pipe', 'pipe'] })
}

/** The whole ruleset as nft prints it, without counts that change. */
export function listWithNft(): string {
  return nft('--stateless', 'list', 'ruleset')
}

/** What nft's JSON says: the objects, without handles and without the version of nft. */
export function listJsonWithNft(): readonly Record<string, Record<string, unknown>>[] {
  const { nftables } = JSON.parse(nft('-j', 'list', 'ruleset')) as {
    nftables: Record<string, Record<string, unknown>>[]
  }
  return nftables
    .filter((object) => object['metainfo'] === undefined)
    .map((object) => {
      const [kind, content] = Object.entries(object)[0]!
      const { handle: _, ...rest } = content
      return { [kind]: rest }
    })
}

/** What it takes to make this table, and to make it again when it exists. */
export function opsToCreate(table: Table): Op[] {
  const chains = [...table.chains.values()]
  return [
    { op: 'deleteTable' },
    { op: 'addTable', comment: table.comment },
    ...Array.from(table.sets.values(), (set): Op => ({ op: 'addSet', set })),
    ...chains.map((chain): Op => ({ op: 'addChain', chain })),
    ...chains.flatMap((chain) => chain.rules.map((rule): Op => ({ op: 'addRule', chain: chain.name, rule }))),
    ...Array.from(table.elements, ([name, elements]): Op => {
      return { op: 'addElements', set: table.sets.get(name)!, elements: [...elements.values()] }
    }),
  ]
}

/** A table without the handles of its rules, which the kernel gives out. */
export function withoutHandles(table: Table | undefined): Table | undefined {
  if (table === undefined) return undefined
  const chains = new Map<string, Chain>()
  for (const chain of table.chains.values()) {
    const rules = chain.rules.map(({ text, comment, expressions }) => ({ text, comment, expressions }))
    chains.set(chain.name, { ...chain, rules })
  }
  return { ...table, chains }
}
