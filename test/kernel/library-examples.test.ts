// The examples in the READMEs of the libraries, on a real kernel.

import { execFileSync } from 'node:child_process'
import { describe, it } from 'vitest'
import { unshareNetwork } from '../../src/system/netns.ts'
import { isRoot } from '../support/nft.ts'
import { checkReadmeExample } from '../support/readme-example.ts'

describe.skipIf(!isRoot)('the example in the README of (needs root)', () => {
  if (isRoot) unshareNetwork()

  it.each(['netlink', 'nftables', 'links', 'bpf'])('%s does what it says', checkReadmeExample)

  it('conntrack does what it says', async () => {
    const tuple = ['--src', '10.0.0.1', '--dst', '10.96.0.10', '--sport', '1000', '--dport', '53']
    const flow = ['-I', '-p', 'udp', ...tuple, '--timeout', '100', '--dst-nat', '10.1.0.1:5353']
    execFileSync('conntrack', flow, { stdio: 'ignore' })
    await checkReadmeExample('conntrack')
  })
})
