// The capabilities that the systemd unit grants are enough for every mode.

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ModeName } from '../conformance/modes.ts'
import { aService, aSlice } from '../support/builders.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { proxyCommand, startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const unit = readFileSync(new URL('../../deploy/kube-proxy.service', import.meta.url), 'utf8')
const granted = /^CapabilityBoundingSet=(.*)$/m.exec(unit)![1]!.split(' ')

test('the unit grants what is about the network, and no core dumps', () => {
  expect(granted).toEqual(['CAP_NET_ADMIN', 'CAP_NET_RAW', 'CAP_NET_BIND_SERVICE'])
  expect(unit).toMatch(/^LimitCORE=0$/m)
  expect(unit).toMatch(/^NoNewPrivileges=true$/m)
})

describe.each<ModeName>(['nftables', 'iptables', 'ipvs', 'userspace'])('%s', (mode) => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
  })
  afterAll(async () => rig[Symbol.asyncDispose]())

  test('serves with these capabilities alone', async ({ skip }) => {
    const reason = whyNotRun(mode)
    if (reason !== undefined) skip(reason)
    const service = aService({ type: 'NodePort', families: [4] })
    rig.cluster.put(service, aSlice(service, ['localB'], { family: 4 }))
    const kept = granted.map((name) => `+${name.replace('CAP_', '').toLowerCase()}`)
    const command = ['setpriv', `--bounding-set=-all,${kept.join(',')}`, '--no-new-privs', ...proxyCommand()]
    const { kubeconfig } = rig.cluster
    await using proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig, command })
    await rig.settled()
    const answer = await tcpProbe(rig.network.sources.localPod, { address: service.spec.clusterIP, port: 80 })
    expect(answer, proxy.logTail(20)).toMatchObject({ kind: 'answered', greeting: { host: 'localB' } })
  })
})
