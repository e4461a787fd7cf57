// The capabilities that the systemd unit grants are enough for every mode, and none of them is too many.

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ModeName } from '../conformance/modes.ts'
import { aService, aSlice } from '../support/builders.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { proxyCommand, startProxy, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { limitedTo, outcomeOfStart } from '../support/rights.ts'

const read = (name: string) => readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')
const unit = read('kube-proxy.service')
const rightsOf = (text: string) => /^CapabilityBoundingSet=(.*)$/m.exec(text)![1]!.split(' ')
const granted = (mode: ModeName) => [
  ...rightsOf(unit),
  ...(mode === 'iptables' ? rightsOf(read('kube-proxy-iptables.conf')) : []),
]

test('the unit grants what is about the network, and no core dumps', () => {
  expect(granted('nftables')).toEqual(['CAP_NET_ADMIN'])
  expect(granted('iptables')).toEqual(['CAP_NET_ADMIN', 'CAP_NET_RAW'])
  expect(unit).toMatch(/^LimitCORE=0$/m)
  expect(unit).toMatch(/^NoNewPrivileges=true$/m)
})

describe.each<ModeName>(['nftables', 'iptables', 'ipvs', 'userspace'])('%s', (mode) => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
  })
  afterAll(async () => rig[Symbol.asyncDispose]())

  test('serves with these capabilities alone, and not with fewer', async ({ skip }) => {
    const reason = whyNotRun(mode)
    if (reason !== undefined) skip(reason)
    // What NET_RAW is for.
    if (mode === 'iptables') rig.network.node.run('iptables-legacy', ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
    const rights = granted(mode)
    for (const right of rights) {
      const fewer = rights.filter((each) => each !== right)
      const outcome = await outcomeOfStart(rig, mode, fewer)
      expect(outcome, `without ${right}`).toMatch(
        right === 'CAP_NET_RAW' ? /^it serves by iptables-nft/ : /^it ends with 1: .*(not permitted|EPERM|denied)/i,
      )
    }
    const service = aService({ type: 'NodePort', families: [4] })
    rig.cluster.put(service, aSlice(service, ['localB'], { family: 4 }))
    const command = [...limitedTo(rights), ...proxyCommand()]
    const { kubeconfig } = rig.cluster
    await using proxy = await startProxy({
      netns: rig.network.node,
      mode,
      kubeconfig,
      command,
    })
    await rig.settled()
    const answer = await tcpProbe(rig.network.sources.localPod, {
      address: service.spec.clusterIP,
      port: 80,
    })
    expect(answer, proxy.logTail(20)).toMatchObject({
      kind: 'answered',
      greeting: { host: 'localB' },
    })
  })
})
