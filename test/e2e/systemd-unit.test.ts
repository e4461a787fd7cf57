// The capabilities that the systemd unit grants are enough for every mode, and none of them is too many.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

test('systemd finds nothing wrong with the unit', ({ skip }) => {
  if (spawnSync('systemd-analyze', ['--version']).status !== 0) return skip('no systemd-analyze')
  const folder = mkdtempSync(join(tmpdir(), 'systemd-unit-'))
  try {
    const file = join(folder, 'kube-proxy-ts.service')
    // It looks for the program, too.
    writeFileSync(file, unit.replace(/^ExecStart=\S+/m, `ExecStart=${proxyCommand()[0]}`))
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--recursive-errors=no', file], {
      encoding: 'utf8',
      env: { ...process.env, SYSTEMD_LOG_LEVEL: 'warning' },
    })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('systemd waits for longer than connections of the userspace mode may take to end', () => {
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(25)
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
