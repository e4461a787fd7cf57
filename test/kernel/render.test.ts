// What `kube-proxy render` prints, loaded with the programs that it is for: the proxy's own comparison then finds nothing to do,
// and the kernel has what the proxy programs by itself.

import { asBytes } from '../../src/lib/ip.ts'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/lib/clock.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { formatElement } from '../../src/nftables/format.ts'
import { nftFamily } from '../../src/nftables/language.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { goldenCases, goldenNode } from '../support/golden-tables.ts'
import { isRoot, nft, withoutHandles } from '../support/nft.ts'
import { viewsFromYaml } from '../support/planned-views.ts'
import { commandsOf, loadScripts, dryRunGolden } from '../support/dry-run.ts'

const folder = mkdtempSync(join(tmpdir(), 'render-'))
beforeAll(() => {
  if (isRoot) unshareNetwork()
  process.env['XTABLES_LOCKFILE'] = join(folder, 'xtables.lock')
})
afterAll(() => rmSync(folder, { recursive: true }))

// nft 1.0.6 miscounts registers in a rule that IPv6 affinity has, and aborts.
const cases = goldenCases.flatMap((name) => ([4, 6] as const).map((family) => ({ name, family })))
const forNft = cases.filter(({ name, family }) => !(name === 'session-affinity' && family === 6))

describe.runIf(isRoot)('the rendered text', () => {
  beforeEach(() => nft('flush', 'ruleset'))

  it.each(forNft)('of the nftables mode is what the proxy programs: $name, IPv$family', async ({ name, family }) => {
    const mode = 'nftables'
    loadScripts(await dryRunGolden(name, { mode, family, kernel: 'empty' }))
    expect(commandsOf(await dryRunGolden(name, { mode, family, kernel: 'this machine' }))).toEqual([])
    const driver = new NftablesDriver({ family: nftFamily(family), table: nftablesPlanner.table })
    const rendered = withoutHandles(driver.read())
    nft('flush', 'ruleset')
    const node = goldenNode(family)
    const views = viewsFromYaml(new URL(`../golden/${name}/input.yaml`, import.meta.url).pathname, node)
    await new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock }).syncAll(node, views)
    expect(rendered).toEqual(withoutHandles(driver.read()))
    driver.close()
  })

  it.each(cases)('of the userspace mode leaves nothing to do: $name, IPv$family', async ({ name, family }) => {
    const mode = 'userspace'
    loadScripts(await dryRunGolden(name, { mode, family, kernel: 'empty' }))
    expect(commandsOf(await dryRunGolden(name, { mode, family, kernel: 'this machine' }))).toEqual([])
  })

  it.each(['nft', 'legacy'].flatMap((backend) => cases.map((each) => ({ ...each, backend }))))(
    'of the iptables mode leaves nothing to do: $name, IPv$family, iptables-$backend',
    async ({ name, family, backend }) => {
      const mode = 'iptables'
      const rename = (program: string) => program.replace('tables', `tables-${backend}`)
      clearIptables()
      // Where kubelet left its hint, that backend is used.
      execFileSync(`iptables-${backend}`, ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
      loadScripts(await dryRunGolden(name, { mode, family, kernel: 'empty' }), rename)
      expect(commandsOf(await dryRunGolden(name, { mode, family, kernel: 'this machine' }))).toEqual([])
    },
  )
})

describe.runIf(isRoot)('a plan', () => {
  beforeEach(() => nft('flush', 'ruleset'))

  // Where a service has two endpoints, nft 1.0.6 cannot read back the map that it wrote itself, and refuses to change the table.
  it('can be carried out by nft', async () => {
    const kind = { mode: 'nftables', family: 6 } as const
    loadScripts(await dryRunGolden('cluster-ip', { ...kind, kernel: 'empty' }))
    const plan = await dryRunGolden('external', { ...kind, kernel: 'this machine' })
    expect(commandsOf(plan)).not.toEqual([])
    loadScripts(plan)
    expect(commandsOf(await dryRunGolden('external', { ...kind, kernel: 'this machine' }))).toEqual([])
  })

  it.each(cases)('between any two states has commands, and changes nothing: $name, IPv$family', async (to) => {
    const kind = { mode: 'nftables', family: to.family } as const
    const from = forNft.find(({ name, family }) => family === to.family && name !== to.name)!
    loadScripts(await dryRunGolden(from.name, { ...kind, kernel: 'empty' }))
    const before = nft('list', 'ruleset')
    expect(commandsOf(await dryRunGolden(to.name, { ...kind, kernel: 'this machine' }))).not.toEqual([])
    expect(nft('list', 'ruleset')).toBe(before)
  })

  it('names what is missing and what is too much', async () => {
    const kind = { mode: 'nftables', family: 4 } as const
    loadScripts(await dryRunGolden('external', { ...kind, kernel: 'empty' }))
    const driver = new NftablesDriver({ family: 'ip', table: nftablesPlanner.table })
    const set = driver.read()!.sets.get('cluster-ips')!
    const [element] = driver.readElements(set)
    driver.apply([{ op: 'deleteElements', set, elements: [element!] }])
    driver.apply([{ op: 'addElements', set, elements: [{ key: asBytes('\n\t\t\t') }] }])
    driver.close()
    expect(commandsOf(await dryRunGolden('external', { ...kind, kernel: 'this machine' })).sort()).toEqual([
      `add element ip kube-proxy cluster-ips { ${formatElement(set, element!)} }`,
      'delete element ip kube-proxy cluster-ips { 10.9.9.9 }',
    ])
  })
})

function clearIptables(): void {
  for (const program of ['iptables-legacy', 'ip6tables-legacy', 'iptables-nft', 'ip6tables-nft']) {
    for (const table of ['nat', 'filter', 'mangle']) {
      execFileSync(program, ['-t', table, '-F'])
      execFileSync(program, ['-t', table, '-X'])
    }
  }
}
