import { describe, expect, it } from 'vitest'
import type { SettingFiles } from '../../system/host-setup.ts'
import { bridgeWarning, invalidPackets, planIptablesHostSetup } from './host-setup.ts'

function filesWith(contents: Readonly<Record<string, string>>): SettingFiles {
  return {
    read(path) {
      const found = contents[path]
      if (found === undefined) throw new Error(`${path} is missing`)
      return found
    },
    write() {},
  }
}

describe('planIptablesHostSetup()', () => {
  const wants = (localhostNodePorts: boolean, ...nodePortAddresses: string[]) =>
    planIptablesHostSetup({ localhostNodePorts, nodePortAddresses }).map(({ path, wanted }) => `${path}=${wanted}`)
  const routeLocalnet = ['/proc/sys/net/ipv4/conf/all/route_localnet=1']

  it('sets route_localnet where node ports are open on localhost', () => {
    expect(wants(true)).toEqual(routeLocalnet)
    expect(wants(true, 'localhost')).toEqual(routeLocalnet)
    expect(wants(true, '127.0.0.1/32')).toEqual(routeLocalnet)
    expect(wants(true, 'fd00::/8')).toEqual(routeLocalnet)
  })

  it('leaves it alone otherwise', () => {
    expect(wants(false)).toEqual([])
    expect(wants(true, '10.0.0.0/8')).toEqual([])
  })
})

describe('invalidPackets()', () => {
  const path = '/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal'

  it('are dropped unless connection tracking is liberal, or will be', () => {
    expect(invalidPackets(filesWith({ [path]: '0\n' }), false)).toBe('drop')
    expect(invalidPackets(filesWith({}), false)).toBe('drop')
    expect(invalidPackets(filesWith({ [path]: '1\n' }), false)).toBe('keep')
    expect(invalidPackets(filesWith({ [path]: '0\n' }), true)).toBe('keep')
  })
})

describe('bridgeWarning()', () => {
  it('says whether the module is missing or the setting is off', () => {
    expect(bridgeWarning(filesWith({}), 4)).toContain('br_netfilter is not loaded')
    const off = filesWith({ '/proc/sys/net/bridge/bridge-nf-call-ip6tables': '0\n' })
    expect(bridgeWarning(off, 6)).toContain('net.bridge.bridge-nf-call-ip6tables is 0')
  })

  it('says nothing where bridges pass iptables', () => {
    expect(bridgeWarning(filesWith({ '/proc/sys/net/bridge/bridge-nf-call-iptables': '1\n' }), 4)).toBeUndefined()
  })
})
