// `kube-proxy explain` beside a real kernel: what it reads back, and what a packet does that it sends.

import { execFileSync } from 'node:child_process'
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { explain, prepare } from '../../src/diagnose/explain/explain.ts'
import { decideAll, type Known } from '../../src/diagnose/explain/known.ts'
import { readKernelState } from '../../src/diagnose/explain/read-kernel.ts'
import { sendPacket } from '../../src/diagnose/explain/send.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { modeNamed } from '../../src/modes/all.ts'
import type { Walkable } from '../../src/packet-walk/types.ts'
import { LIST_MAPS } from '../../src/modes/nftables/plan/lists.ts'
import { readWalkableTable } from '../../src/nftables/read-walkable.ts'
import { nftablesPlanner } from '../../src/modes/nftables/plan/planner.ts'
import { TableProgrammer } from '../../src/table-sync/table-programmer.ts'
import { NftablesDriver } from '../../src/nftables/driver.ts'
import { formatTable } from '../../src/nftables/format.ts'
import { planTraceTable } from '../../src/nftables/trace-table.ts'
import type { Table } from '../../src/nftables/types.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { nodeAddresses } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { explainConnection } from '../support/explain-flow.ts'
import { compileTableWithNft } from '../support/nft-debug.ts'
import { decodeObjects, nodeViewOf } from '../support/planned-node.ts'
import { aRandomCluster, aRandomPacket, Dice } from '../support/random-clusters.ts'

const isRoot = process.getuid?.() === 0
/** EXPLAIN_CLUSTERS=400 for all of the clusters of test/conformance/explain-random.test.ts. */
const CLUSTERS = Number(process.env['EXPLAIN_CLUSTERS'] ?? 20)
const PACKETS = 25

const web = aService({ name: 'web', spec: { sessionAffinity: 'ClientIP' } })
const known: Known = {
  source: 'a test',
  hasObjects: true,
  mode: modeNamed('nftables'),
  nodes: { 4: nodeViewOf(4, {}, ['primary']) },
  machineAddresses: nodeAddresses,
  ...decodeObjects([web, aSlice(web, ['localA'])]),
  allowExternalIPs: true,
  localhostNodePorts: true,
  connectRetry: false,
  ejected: new Map(),
  otherNodes: [],
  pods: [],
}

function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

describe.skipIf(!isRoot)('explain beside the kernel (needs root)', () => {
  let driver: NftablesDriver
  let server: Server

  beforeAll(async () => {
    unshareNetwork()
    run('ip', 'link', 'set', 'lo', 'up')
    for (const address of ['10.3.0.10/32', '10.1.0.11/32']) run('ip', 'address', 'add', address, 'dev', 'lo')
    run('ip', 'route', 'add', '10.2.0.0/16', 'dev', 'lo')
    driver = new NftablesDriver({ family: 'ip', table: nftablesPlanner.table })
    server = createServer((socket) => socket.end())
    await new Promise<void>((resolve) => void server.listen(8080, '10.1.0.11', resolve))
  })
  afterAll(() => {
    server?.close()
    driver?.close()
  })

  async function program(of: Known): Promise<void> {
    const decided = decideAll(of, 4)!
    await new TableProgrammer({ planner: nftablesPlanner, driver, clock: systemClock }).syncAll(
      decided.node,
      decided.model.views(),
    )
  }

  /** As in large clusters: what a packet looks for in the lists is asked of the kernel. */
  function lookUpLists(): Walkable {
    const perhaps = { sets: LIST_MAPS, areWanted: () => false }
    return readWalkableTable({ family: 'ip', table: nftablesPlanner.table, perhaps }, Date.now())!
  }

  it('agrees with what was read back, for random clusters and packets', async () => {
    for (let nth = 0; nth < 2 * CLUSTERS; nth += 2) {
      const dice = new Dice(1_000_000 + nth)
      const cluster = aRandomCluster(dice, 4)
      const view = nodeViewOf(4, cluster.settings, ['primary'])
      const { services, slices } = cluster
      const of: Known = { ...known, nodes: { 4: view }, services, slices }
      await program(of)
      const state = await readKernelState('nftables', 4)
      if (state.kind !== 'walkable') return expect.fail(JSON.stringify(state))
      const walkable = nth % 4 === 0 ? state.walkable : lookUpLists()
      const context = { known: of, decided: decideAll(of, 4)!, walkable }
      for (let i = 0; i < PACKETS; i++) {
        const { differences, about } = explainConnection(aRandomPacket(dice, 4, cluster).connection, context)
        expect(differences, `cluster ${nth}, packet ${i}: ${about}`).toEqual([])
      }
    }
  })

  it('a packet that is sent does what was said, is remembered, and leaves nothing behind', async () => {
    await program(known)
    const prepared = prepare(known, { from: 'node', to: 'default/web' })
    const sent = await sendPacket(prepared)
    expect(sent).toMatchObject({ answer: 'connected', outcome: 'to', destination: '10.1.0.11:8080', differences: [] })
    expect(sent.trace.join('\n')).toMatch(/ip kube-proxy services-pick rule .* dnat/)
    expect(run('nft', 'list', 'tables').trim()).toBe('table ip kube-proxy')
    const { agreement, affinity } = explain(prepared, await readKernelState('nftables', 4), sent)
    expect(agreement).toBe('agrees')
    expect(affinity).toMatchObject({ seconds: 10800, remembered: true, backend: '10.1.0.11:8080' })
    expect(affinity!.secondsLeft).toBeGreaterThan(10_000)
  })

  it.each([
    [4, '10.2.0.80'],
    [6, 'fd00::80'],
  ] as const)('the table of a trace is what nft makes of its words, IPv%d', (family, destination) => {
    const flow = { family, protocol: 'TCP', sourcePort: 45_000, destination, destinationPort: 80 } as const
    const chains = [...planTraceTable(flow).chains]
    const table: Table = {
      family: family === 4 ? 'ip' : 'ip6',
      name: 'kube-proxy-explain-1',
      comment: undefined,
      sets: new Map(),
      chains: new Map(chains.map((chain) => [chain.name, chain])),
      elements: new Map(),
    }
    const compiled = compileTableWithNft(formatTable(table))
    for (const { name, rules } of chains) expect(compiled.get(name)).toEqual(rules.map((rule) => rule.expressions))
  })

  it('needs no program for it', async () => {
    await program(known)
    const { PATH } = process.env
    process.env['PATH'] = '/nowhere'
    try {
      const sent = await sendPacket(prepare(known, { from: 'node', to: 'default/web' }))
      expect(sent).toMatchObject({ answer: 'connected', outcome: 'to', destination: '10.1.0.11:8080', differences: [] })
    } finally {
      process.env['PATH'] = PATH
    }
  })

  it('a kernel that does something else is shouted about, by what is read and by the packet', async () => {
    await program(known)
    for (const set of ['served-ips', 'served-ips-special']) run('nft', 'flush', 'set', 'ip', 'kube-proxy', set)
    const prepared = prepare(known, { from: 'node', to: 'default/web' })
    const sent = await sendPacket(prepared)
    expect(sent.outcome).toBe('reject')
    const explanation = explain(prepared, await readKernelState('nftables', 4), sent)
    expect(explanation.agreement).toBe('differs')
    expect(explanation.headline).toMatch(
      /^The kernel does not do what the proxy decided: decided: sent to an endpoint; in the kernel: refused/,
    )
    const rule = 'table ip kube-proxy, chain cluster-ips-check: ip daddr @cluster-ips reject'
    expect(sent.differences).toEqual([
      expect.stringContaining(`predicted: sent to an endpoint; the packet was refused, by ${rule}`),
    ])
  })
})
