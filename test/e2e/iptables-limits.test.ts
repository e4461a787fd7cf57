// The iptables mode runs other programs. When the machine has no room for another process, or the proxy for another open file, it
// says so, goes on with what is there, and catches up.

import { execFileSync } from 'node:child_process'
import { chmodSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { aShortWhile, tcpProbe } from '../support/netns/probe.ts'
import { proxyCommand, startProxy } from '../support/proxy-process.ts'
import type { ProxyProcess } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

let rig: Rig
let proxy: ProxyProcess

beforeEach(async () => {
  rig = await openRig()
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await rig[Symbol.asyncDispose]()
})

/** Limits of processes do not hold for root. */
const asAnotherUser = [
  'setpriv',
  '--reuid=65534',
  '--clear-groups',
  '--inh-caps=-all,+net_admin,+net_raw',
  '--ambient-caps=+net_admin,+net_raw',
  '--bounding-set=-all,+net_admin,+net_raw',
]

test.for([
  // Below all that it has open: how many there are at a moment depends on the programs that it runs then.
  ['EMFILE', [], 'nofile', 'Max open files', '3'],
  ['EAGAIN', asAnotherUser, 'nproc', 'Max processes', '1'],
] as const)('%s from fork is logged, the proxy lives and catches up', async ([code, user, name, inProc, low]) => {
  proxy = await start(user)
  const { pid } = proxy
  const [, before = ''] = new RegExp(`${inProc} +(\\S+)`).exec(readFileSync(`/proc/${pid}/limits`, 'utf8')) ?? []
  // The soft limit alone, which the user of the process may lower and raise.
  const setLimit = (to: string) => {
    const [program, ...args] = [...user.slice(0, 3), 'prlimit', '--pid', `${pid}`, `--${name}=${to}:`]
    execFileSync(program, args)
  }
  setLimit(low)
  const late = aService({ families: [4, 6] })
  rig.cluster.put(late, aSlice(late, ['localB'], { family: 4 }), aSlice(late, ['localC'], { family: 6 }))
  await eventually('a sync failed', () =>
    new RegExp(`Sync failed.*spawn.*${code}`).test(proxy.log()) ? undefined : proxy.logTail(5),
  )
  // The look for the canaries comes every second.
  await eventually('so did a look at the rules', () =>
    new RegExp(`Cannot look after the rules.*${code}`).test(proxy.log()) ? undefined : proxy.logTail(5),
  )
  expect(proxy.ended, proxy.logTail()).toBeUndefined()
  setLimit(before)
  await eventually('it catches up', async () => {
    const target = { address: late.spec.clusterIP, port: 80 }
    const { kind } = await tcpProbe(rig.network.sources.localPod, target, aShortWhile())
    return kind === 'answered' ? undefined : `${kind}\n${proxy.logTail(5)}`
  })
  expect(proxy.ended).toBeUndefined()
  expect((await proxy.health())?.status).toBe(200)
})

async function start(prefix: readonly string[]): Promise<ProxyProcess> {
  const { kubeconfig, folder } = rig.cluster
  chmodSync(folder, 0o755)
  chmodSync(kubeconfig, 0o644)
  const before = process.env['PROXY_COMMAND']
  process.env['PROXY_COMMAND'] = [...prefix, ...proxyCommand()].join(' ')
  try {
    const args = ['--iptables-min-sync-period=10ms', '--iptables-sync-period=1s']
    const started = await startProxy({ netns: rig.network.node, mode: 'iptables', kubeconfig, args })
    await rig.settled()
    return started
  } finally {
    if (before === undefined) delete process.env['PROXY_COMMAND']
    else process.env['PROXY_COMMAND'] = before
  }
}
