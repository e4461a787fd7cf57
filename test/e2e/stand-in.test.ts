// A machine without the iptables programs: which mode serves in place of iptables.

import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { node } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { proxyCommand, ProxyProcess, proxyFlags, startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
const proxies: ProxyProcess[] = []
const command = process.env['PROXY_COMMAND']
const service = aService({ type: 'NodePort' })

beforeEach(async () => {
  rig = await openRig()
  rig.cluster.put(service, aSlice(service, ['localB']))
  const { folder } = rig.cluster
  for (const name of ['iptables-nft', 'iptables-legacy', 'iptables']) {
    writeFileSync(join(folder, name), '#!/bin/sh\nexit 127\n')
    chmodSync(join(folder, name), 0o755)
  }
  process.env['PROXY_COMMAND'] = ['env', `PATH=${folder}:${process.env['PATH']}`, ...proxyCommand()].join(' ')
})
afterEach(async () => {
  if (command === undefined) delete process.env['PROXY_COMMAND']
  else process.env['PROXY_COMMAND'] = command
  for (const proxy of proxies.splice(0)) await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

test.for([
  ['nftables', []],
  ['userspace', ['--userspace-fallback']],
] as const)('%s stands in for iptables with the flags %s', async ([mode, args]) => {
  const { kubeconfig } = rig.cluster
  const proxy = await startProxy({ netns: rig.network.node, mode: 'iptables', kubeconfig, args })
  proxies.push(proxy)
  await rig.settled()
  expect((await proxy.ask('/proxyMode'))?.body).toBe(mode)
  expect(proxy.log()).toContain(`falling back from iptables to ${mode}`)
  // As in the mode that was asked for: on every address.
  const port = service.spec.ports[0]?.nodePort ?? 0
  const { kind } = await tcpProbe(rig.network.sources.external, { address: node.secondIp[4], port })
  expect(kind).toBe('answered')
})

test('nothing stands in with --strict-proxy-mode', async () => {
  const options = { netns: rig.network.node, mode: 'iptables', kubeconfig: rig.cluster.kubeconfig } as const
  const proxy = new ProxyProcess(rig.network.node, [...proxyFlags(options), '--strict-proxy-mode'])
  proxies.push(proxy)
  expect(await proxy.exited).toBe('1')
  expect(proxy.log()).toContain('none of the programs iptables-nft, iptables-legacy and iptables')
})
