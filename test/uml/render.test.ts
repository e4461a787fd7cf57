// What `kube-proxy render` prints for the ipvs mode, loaded with nft, ipvsadm and ip: nothing is left to do.

import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { goldenCases } from '../support/golden-tables.ts'
import { commandsOf, loadScripts, dryRunGolden } from '../support/dry-run.ts'
import { nodeAddresses } from '../support/addresses.ts'

test.each([4, 6] as const)('the rendered text of the ipvs mode leaves nothing to do, IPv%d', async (family) => {
  unshareNetwork()
  execFileSync('ip', ['link', 'set', 'lo', 'up'])
  // The machine that it was rendered for.
  for (const address of nodeAddresses) {
    execFileSync('ip', ['address', 'add', `${address}/${address.includes(':') ? 128 : 32}`, 'dev', 'lo'])
  }
  const mode = 'ipvs'
  for (const name of goldenCases) {
    loadScripts(await dryRunGolden(name, { mode, family, kernel: 'empty' }))
    expect(commandsOf(await dryRunGolden(name, { mode, family, kernel: 'this machine' })), name).toEqual([])
    execFileSync('ipvsadm', ['-C'])
    execFileSync('nft', ['flush', 'ruleset'])
    execFileSync('ip', ['link', 'delete', 'kube-ipvs0'])
  }
})
