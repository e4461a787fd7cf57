// Source ranges and affinity at scale: what a change costs beside them, and what a change of one of them costs.
//   npm run bench:ranges -- [services of each kind]
//
// Runs the built program against an API server on loopback, in a network namespace of its own: first with plain services alone, then
// with as many that have 20 source ranges each, and as many with affinity, whose maps remember 100 clients each.

import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { TestApiServer } from '../support/api-server/api-server.ts'
import type { ApiObject } from '../support/api-server/objects.ts'
import { benchNode } from '../support/api-server/sample-cluster.ts'
import { median, table } from './figures.ts'
import { MeasuredProxy } from './measured-proxy.ts'
import { enterOwnNetwork, flushRules } from './netns.ts'

const RANGES = 20
const CLIENTS = 100
const CHANGES = 40

type Kind = 'plain' | 'ranges' | 'affinity'
const nets: Record<Kind, number> = { plain: 1, ranges: 2, affinity: 3 }

const two = (n: number) => `${n >> 8}.${n & 255}`

function serviceOf(kind: Kind, i: number, round = 0): ApiObject {
  const clusterIP = `172.${16 + nets[kind]}.${two(i)}`
  const base = {
    clusterIP,
    clusterIPs: [clusterIP],
    ipFamilies: ['IPv4'],
    ports: [{ name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 }],
  }
  const ranges = Array.from({ length: RANGES }, (_, n) => `${20 + n}.${two(i)}.0/24`)
  if (round > 0) ranges[0] = `90.${two(round)}.0/24`
  const more = {
    plain: {},
    ranges: { type: 'LoadBalancer', loadBalancerSourceRanges: ranges },
    affinity: {
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } },
    },
  }[kind]
  const status = kind === 'ranges' ? { loadBalancer: { ingress: [{ ip: `203.${two(i)}.1` }] } } : {}
  return { kind: 'Service', metadata: { name: `${kind}-${i}` }, spec: { ...base, ...more }, status }
}

function sliceOf(kind: Kind, i: number, round = 0): ApiObject {
  const address = (n: number) => `10.${nets[kind] * 64 + (i >> 8)}.${i & 255}.${n + 1}`
  const addresses = Array.from({ length: 10 }, (_, n) => address(n))
  if (round > 0) addresses[9] = `11.${nets[kind]}.${two(round)}`
  return {
    kind: 'EndpointSlice',
    metadata: { name: `${kind}-${i}-a`, labels: { 'kubernetes.io/service-name': `${kind}-${i}` } },
    addressType: 'IPv4',
    endpoints: addresses.map((each) => ({ addresses: [each], conditions: { ready: true } })),
    ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  }
}

/** As packets of so many clients would have filled them. */
function remember(): number {
  const maps = execFileSync('nft', ['list', 'maps', 'ip'], { encoding: 'utf8', maxBuffer: 1 << 30 })
  const tableName = /table ip (\S+) \{/.exec(maps)![1]!
  const names = [...maps.matchAll(/map (\S*affinity\S*) \{\s*type ipv4_addr : /g)].map(([, name]) => name!)
  const lines: string[] = []
  for (const name of names) {
    const i = Number(/default\/affinity-(\d+)/.exec(name)![1])
    const endpoint = `10.${nets.affinity * 64 + (i >> 8)}.${i & 255}.1`
    const elements = Array.from({ length: CLIENTS }, (_, n) => `100.64.${n >> 8}.${n & 255} : ${endpoint} . 8080`)
    lines.push(`add element ip ${tableName} ${name} { ${elements.join(', ')} }`)
  }
  execFileSync('nft', ['-f', '-'], { input: `${lines.join('\n')}\n` })
  return names.length * CLIENTS
}

enterOwnNetwork()
const count = Number(process.argv[2] ?? 1000)
const rows: string[][] = []
for (const kinds of [['plain'], ['plain', 'ranges', 'affinity']] as const satisfies Kind[][]) {
  flushRules()
  await using server = await TestApiServer.start()
  const all = kinds.flatMap((kind) =>
    Array.from({ length: count }, (_, i) => [serviceOf(kind, i), sliceOf(kind, i)]).flat(),
  )
  server.store.applyAll([benchNode(), ...all])
  await using proxy = await MeasuredProxy.start(server.url)
  await proxy.live()
  let remembered = 0
  if (kinds.includes('affinity' as never)) {
    remembered = remember()
    // The proxy sees another program change its table, and compares.
    await sleep(8000)
  }
  let round = 0
  const costOf = async (what: string, change: (i: number, round: number) => ApiObject) => {
    const times: number[] = []
    for (let n = 0; n < CHANGES; n++) {
      round++
      times.push(await proxy.oneChange(() => server.store.apply(change((round * 7919) % count, round))))
    }
    rows.push([kinds.join(' + '), String(remembered), what, `${median(times).toFixed(2)} ms`])
    console.error(rows.at(-1)!.join(' | '))
  }
  await costOf('an endpoint of a plain service', (i, r) => sliceOf('plain', i, r))
  for (const kind of kinds.slice(1)) {
    await costOf(`an endpoint of a service with ${kind}`, (i, r) => sliceOf(kind, i, r))
    if (kind === 'ranges') await costOf('a source range', (i, r) => serviceOf('ranges', i, r))
  }
}
console.log(
  table([`${count} services of each`, 'remembered clients', 'what changes', 'until it is in the kernel'], rows),
)
console.log(`
Median of ${CHANGES}, from the event received to the kernel's acknowledgement.`)
process.exit(0)
