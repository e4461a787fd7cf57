// The Go kube-proxy and ours on the same node, one after the other, with the objects of the packet-flow table: the same rules.
// GO_KUBE_PROXY names the program. The golden files iptables-go.save were written by it, too.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { packetFlowCases } from '../conformance/packet-flow.cases.ts'
import type { ProxySettings } from '../conformance/packet-flow.ts'
import { startProxy } from '../support/proxy-process.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

const goProxy = process.env['GO_KUBE_PROXY']

/** Rows on which we differ by intent: one bad endpoint must not stop all services, and an address has one owner. */
const left = /wrong family|of two services that claim/
/** kube-proxy 1.36 does not know words in nodePortAddresses. */
const words = /localhost|all|primary/

const groups = new Map<string, (typeof packetFlowCases)[number][]>()
for (const row of packetFlowCases) {
  const settings = JSON.stringify(row.settings)
  if (left.test(row.name) || words.test(settings.replace(/masqueradeAll|localPods/g, ''))) continue
  groups.set(settings, [...(groups.get(settings) ?? []), row])
}

describe.skipIf(goProxy === undefined)('the rules of the Go kube-proxy (needs GO_KUBE_PROXY)', () => {
  let rig: Rig
  beforeAll(async () => {
    rig = await openRig()
  })
  afterAll(() => rig[Symbol.asyncDispose]())

  test.for([...groups])('with settings %s', async ([, rows]) => {
    const objects = rows.flatMap((row) => row.objects)
    rig.cluster.put(...objects)
    // It asks for a stream of initial events, which our test server does not have.
    const theirs = await rulesOf(`${goProxy} --feature-gates=WatchListClient=false`, rows[0]!.settings)
    const ours = await rulesOf(undefined, rows[0]!.settings)
    rig.cluster.remove(...objects)
    expect(theirs.length).toBeGreaterThan(20)
    expect(ours).toEqual(theirs)
  })

  async function rulesOf(command: string | undefined, settings: ProxySettings): Promise<string[]> {
    const given = process.env['PROXY_COMMAND']
    if (command !== undefined) process.env['PROXY_COMMAND'] = `${command} --kube-api-content-type=application/json`
    const proxy = await startProxy({
      netns: rig.network.node,
      mode: 'iptables',
      kubeconfig: rig.cluster.kubeconfig,
      settings,
      args: ['--iptables-min-sync-period=10ms'],
    }).finally(() => {
      if (given === undefined) delete process.env['PROXY_COMMAND']
      else process.env['PROXY_COMMAND'] = given
    })
    await rig.settled()
    await proxy[Symbol.asyncDispose]()
    const rules = ['iptables', 'ip6tables'].flatMap((name) => saved(name))
    for (const name of ['iptables', 'ip6tables']) wipe(name)
    return rules.sort()
  }

  function saved(name: string): string[] {
    return ['filter', 'nat'].flatMap((table) => {
      const lines = rig.network.node.run(`${name}-save`, ['-t', table]).split('\n')
      return lines
        .filter((line) => /^[:-]/.test(line) && !/KUBE-PROXY-(CANARY|LOCALNET)/.test(line))
        .map((line) => `${name} ${table} ${line.replace(/ \[\d+:\d+\]$/, '')}`)
    })
  }

  function wipe(name: string): void {
    for (const table of ['filter', 'nat', 'mangle']) {
      rig.network.node.run(name, ['-t', table, '-F'])
      rig.network.node.run(name, ['-t', table, '-X'])
    }
  }
})
