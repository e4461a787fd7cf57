// The drawings of docs/concepts/packet.md: each is what `kube-proxy explain -o svg` draws, of a cluster that stands here, with the
// rules that a mode plans for it in place of a kernel. `npm run golden` draws them again.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { explain, prepare } from '../../src/diagnose/explain/explain.ts'
import type { Known } from '../../src/diagnose/explain/known.ts'
import type { Question } from '../../src/diagnose/explain/question.ts'
import { formatSvg } from '../../src/diagnose/explain/format-svg.ts'
import { modeNamed } from '../../src/modes/all.ts'
import type { ModeName } from '../conformance/modes.ts'
import { nodeAddresses, pods } from '../support/addresses.ts'
import { anEmptyCluster, aService, aSlice, type ApiObject } from '../support/builders.ts'
import { decodeObjects, nodeViewOf } from '../support/planned-node.ts'
import { plannedWalkables } from '../support/planned-walkable.ts'

const docs = join(import.meta.dirname, '../../docs')

/** One Service, two pods on this node and one on another. */
function cluster(
  spec: Record<string, unknown> = {},
  endpoints: Parameters<typeof aSlice>[1] = ['localA', 'localB', 'remoteA'],
) {
  const service = aService({
    name: 'web',
    type: 'LoadBalancer',
    clusterIPs: ['10.2.0.80'],
    ports: [{ port: 80, targetPort: 8080, nodePort: 30_080 }],
    ingress: [{ ip: '192.0.2.80' }],
    spec,
  })
  return [...anEmptyCluster(), service, aSlice(service, endpoints, { name: 'web-1' })]
}

async function draw(mode: ModeName, objects: readonly ApiObject[], question: Question): Promise<string> {
  const known = knownOf(mode, objects)
  const prepared = prepare(known, question)
  const walkable = await plannedWalkables[mode](prepared.decided.node, [...prepared.decided.model.views()])
  return formatSvg(explain(prepared, { kind: 'walkable', walkable, when: 'planned', nowMs: 0 }))
}

function knownOf(name: ModeName, objects: readonly ApiObject[]): Known {
  const mode = modeNamed(name)
  return {
    source: 'docs/concepts/packet.md',
    hasObjects: true,
    mode,
    nodes: { 4: nodeViewOf(4, {}, mode.defaultNodePortAddresses), 6: nodeViewOf(6, {}, mode.defaultNodePortAddresses) },
    machineAddresses: nodeAddresses,
    ...decodeObjects(objects),
    allowExternalIPs: true,
    localhostNodePorts: true,
    connectRetry: false,
    ejected: new Map(),
    otherNodes: [],
    pods: Object.values(pods).map(({ name, ip, nodeName }) => ({
      namespace: 'default',
      name: name.toLowerCase(),
      ips: [ip[4], ip[6]],
      nodeName,
    })),
  }
}

const drawings: readonly (readonly [file: string, ModeName, readonly ApiObject[], Question])[] = [
  ['packet-from-a-pod', 'nftables', cluster(), { from: 'default/localb', to: 'web' }],
  ['packet-from-outside', 'nftables', cluster(), { from: 'outside', to: 'web' }],
  ['packet-local', 'nftables', cluster({ externalTrafficPolicy: 'Local' }), { from: 'outside', to: 'web' }],
  ['packet-refused', 'nftables', cluster({}, []), { from: 'default/localb', to: 'web' }],
  [
    'packet-dropped',
    'nftables',
    cluster({ loadBalancerSourceRanges: ['198.51.100.0/24'] }),
    { from: 'outside', to: 'web' },
  ],
  ['packet-iptables', 'iptables', cluster(), { from: 'default/localb', to: 'web' }],
  ['packet-ipvs', 'ipvs', cluster(), { from: 'default/localb', to: 'web' }],
  ['packet-userspace', 'userspace', cluster(), { from: 'default/localb', to: 'web' }],
]

describe('docs/concepts/packet.md', () => {
  it.each(drawings)('%s.svg is what explain draws', async (file, mode, objects, question) => {
    await expect(await draw(mode, objects, question)).toMatchFileSnapshot(join(docs, 'images', `${file}.svg`))
  })

  it('shows all of them', () => {
    const page = readFileSync(join(docs, 'concepts/packet.md'), 'utf8')
    const shown = [...page.matchAll(/\(\.\.\/images\/(packet-[\w-]+)\.svg\)/g)].map(([, name]) => name)
    expect(shown).toEqual(drawings.map(([file]) => file))
  })
})
