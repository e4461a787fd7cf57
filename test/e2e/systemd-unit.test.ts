// The capabilities that the systemd unit grants are enough for every mode.

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

const unit = readFileSync(new URL('../../deploy/kube-proxy.service', import.meta.url), 'utf8')
const granted = /^CapabilityBoundingSet=(.*)$/m.exec(unit)![1]!.split(' ')

test('the unit grants what is about the network, and no core dumps', () => {
  expect(granted).toEqual(['CAP_NET_ADMIN', 'CAP_NET_RAW', 'CAP_NET_BIND_SERVICE'])
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
