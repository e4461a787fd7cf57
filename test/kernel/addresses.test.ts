// The addresses of the machine, with iproute2 as oracle.

import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { listAddresses, watchAddresses } from '../../src/links/addresses.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { isRoot } from '../support/nft.ts'

/** An address that the kernel still looks for on the link, and tells of when it has not found it there. */
const TENTATIVE = 0x40

function ip(...args: string[]): string {
  return execFileSync('ip', args, { encoding: 'utf8' })
}

interface IpAddressJson {
  readonly ifname: string
  readonly ifindex: number
  readonly addr_info: readonly { readonly family: string; readonly local: string; readonly scope: string }[]
}

describe.skipIf(!isRoot)('addresses (need root)', () => {
  beforeAll(() => {
    unshareNetwork()
    ip('link', 'set', 'lo', 'up')
    ip('link', 'add', 'veth-a', 'type', 'veth', 'peer', 'name', 'veth-b')
    ip('address', 'add', '10.0.0.1/24', 'dev', 'veth-a')
    ip('address', 'add', '10.0.0.2', 'peer', '10.0.0.9', 'dev', 'veth-a')
    ip('address', 'add', 'fd00:0:0::00a1/64', 'dev', 'veth-a')
    ip('address', 'add', '169.254.20.10/32', 'dev', 'veth-b', 'scope', 'link')
  })

  it('listAddresses() lists what ip lists, links that are down included', () => {
    const json = JSON.parse(ip('-j', 'address')) as IpAddressJson[]
    const expected = json.flatMap(({ ifname, ifindex, addr_info }) =>
      addr_info.map(({ family, local, scope }) => ({
        address: local,
        family: family === 'inet' ? 4 : 6,
        interfaceName: ifname,
        index: ifindex,
        scope,
      })),
    )
    const listed = listAddresses().map(({ address, family, interfaceName, index, scope }) => ({
      address,
      family,
      interfaceName,
      index,
      scope,
    }))
    expect(new Set(listed)).toEqual(new Set(expected))
    expect(listed.map(({ address }) => address)).toEqual(
      expect.arrayContaining(['127.0.0.1', '::1', '10.0.0.1', '10.0.0.2', 'fd00::a1', '169.254.20.10']),
    )
  })

  it('listAddresses() tells addresses that are not settled yet', () => {
    ip('link', 'set', 'veth-a', 'up')
    ip('link', 'set', 'veth-b', 'up')
    ip('address', 'add', 'fd00::b1/64', 'dev', 'veth-a')
    const { flags } = listAddresses().find(({ address }) => address === 'fd00::b1')!
    expect(flags & TENTATIVE).toBe(TENTATIVE)
  })

  it('watchAddresses() calls back when an address comes or goes, of either family', async () => {
    await settled()
    let calls = 0
    const watch = watchAddresses(() => calls++)
    for (const change of [
      ['add', '10.0.0.5/24'],
      ['del', '10.0.0.5/24'],
      ['add', 'fd00::5/64'],
      ['del', 'fd00::5/64'],
    ]) {
      const before = calls
      ip('address', ...change, 'dev', 'veth-b')
      await eventually(`${change.join(' ')} is told`, () => (calls > before ? undefined : 'it is not'))
    }
    watch.close()
    const before = calls
    let laterCalls = 0
    const later = watchAddresses(() => laterCalls++)
    ip('address', 'add', '10.0.0.6/24', 'dev', 'veth-b')
    await eventually('another watch is told', () => (laterCalls > 0 ? undefined : 'it is not'))
    later.close()
    expect(calls).toBe(before)
  })

  it('watchAddresses() calls back once for many changes that came together', async () => {
    await settled()
    let calls = 0
    const watch = watchAddresses(() => calls++)
    // It ends before this process looks at what the kernel tells.
    ip('address', 'flush', 'dev', 'veth-a')
    await eventually('it is told', () => (calls > 0 ? undefined : 'it is not'))
    await staysQuiet('it is told once', () => (calls === 1 ? undefined : `${calls} times`), { forMs: 50 })
    watch.close()
  })

  it('watchAddresses() does not mind the addresses of the link that is excepted, whenever it comes', async () => {
    let calls = 0
    const watch = watchAddresses(() => calls++, { except: new Set(['service0']) })
    ip('link', 'add', 'service0', 'type', 'veth', 'peer', 'name', 'service1')
    await delay(20)
    calls = 0
    ip('address', 'add', '10.0.0.7/32', 'dev', 'service0')
    ip('address', 'add', 'fd00::7/128', 'dev', 'service0')
    ip('address', 'del', '10.0.0.7/32', 'dev', 'service0')
    await delay(20)
    expect(calls).toBe(0)
    ip('address', 'add', '10.0.0.8/32', 'dev', 'veth-b')
    await eventually('the other link is heard', () => (calls > 0 ? undefined : 'nothing'))
    ip('link', 'del', 'service0')
    ip('link', 'add', 'service0', 'type', 'veth', 'peer', 'name', 'service1')
    await delay(20)
    calls = 0
    ip('address', 'add', '10.0.0.7/32', 'dev', 'service0')
    await delay(20)
    expect(calls).toBe(0)
    ip('link', 'del', 'service0')
    watch.close()
  })

  it('watchAddresses() calls back when there is no file descriptor left to ask for the name of the link', async () => {
    await settled()
    let calls = 0
    const watch = watchAddresses(() => calls++, { except: new Set(['service0']) })
    const [, soft, hard] = /Max open files\s+(\d+)\s+(\d+)/.exec(readFileSync('/proc/self/limits', 'utf8'))!
    const limit = (most: string) => `prlimit --pid=${process.pid} --nofile=${most}:${hard}`
    // Another process does it: this one cannot start any meanwhile.
    const steps = [limit('3'), 'ip address add 10.0.0.9/32 dev veth-b', 'sleep 0.3', limit(soft!)]
    const helper = spawn('sh', ['-c', steps.join(' && ')], { stdio: 'ignore' })
    const [status] = (await once(helper, 'exit')) as [number]
    expect(status).toBe(0)
    expect(calls).toBeGreaterThan(0)
    watch.close()
  })
})

/** Waits until the kernel has nothing more to tell of addresses that it was given before. */
async function settled(): Promise<void> {
  await eventually(
    'no address is tentative',
    () => listAddresses().find(({ flags }) => (flags & TENTATIVE) !== 0)?.address,
  )
}
