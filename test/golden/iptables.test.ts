// One input, the text that iptables-save prints. After a wanted change: npm run golden, and review the difference.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { Family } from '../../src/lib/ip.ts'
import { formatTables } from '../../src/iptables/format.ts'
import type { Tables } from '../../src/iptables/types.ts'
import { planGoldenIptables } from '../support/golden-iptables.ts'
import { casesOfGo, goldenCases } from '../support/golden-tables.ts'

describe.each(goldenCases)('iptables-save for %s', (name) => {
  it('is as reviewed', async () => {
    const text = await Promise.all(([4, 6] as const).map((family) => print(name, family)))
    await expect(text.join('')).toMatchFileSnapshot(`${name}/iptables.save`)
  })

  if (!casesOfGo.includes(name)) return

  // Written by kube-proxy 1.36 for the same objects, see test/e2e/iptables-oracle.test.ts.
  it('has the rules that the Go kube-proxy writes, all of them and no others', async () => {
    const text = await Promise.all(([4, 6] as const).map((family) => print(name, family)))
    const theirs = readFileSync(new URL(`${name}/iptables-go.save`, import.meta.url), 'utf8')
    expect(inAnyOrder(text.join(''))).toEqual(inAnyOrder(theirs))
  })
})

async function print(name: string, family: Family): Promise<string> {
  const tables: Tables = await planGoldenIptables(name, family)
  return `# IPv${family}\n${formatTables(tables)}`
}

/** The order of services in the common chains is up to each: it does not matter, and the Go kube-proxy's is random. */
function inAnyOrder(saved: string): string[] {
  let place = ''
  return saved
    .split('\n')
    .flatMap((line) => {
      if (/^(# IPv|\*)/.test(line)) place = line.startsWith('*') ? place.replace(/\*.*|$/, line) : line
      return /^[:-]/.test(line) ? [`${place} ${line.replace('--nfacct-name  ', '--nfacct-name ')}`] : []
    })
    .sort()
}
