// What a start, changes and rest cost, for several programs in turns: A B A B, so that a busy machine disturbs all of them alike.
//   npm run bench:turns -- [--rounds 5] [--services 1000] [--endpoints 10] [--changes 0] [--rest 5] [NAME=COMMAND ...]
//
// The figures are the kernel's about the process: CPU, memory, wakeups. With --changes, so many are made, one in 10 ms, and
// then the program is left alone for --rest seconds. A COMMAND is a program with arguments; this program as it is shipped, on the Node in
// PATH, when none is given. With KUBE_APISERVER=/path/to/kube-apiserver (and ETCD=/path/to/etcd, or etcd in PATH) the API server is the real one; else
// it is that of the sandbox.

import { parseArgs } from 'node:util'
import { clusterOf } from '../support/api-server/sample-cluster.ts'
import { openApi } from './beside-api.ts'
import { shippedProgram } from './beside-contestant.ts'
import { median, table } from './figures.ts'
import { columns, type Figures, measureTurn } from './measure-turn.ts'
import { enterOwnNetwork } from './netns.ts'

const { values, positionals } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    services: { type: 'string', default: '1000' },
    endpoints: { type: 'string', default: '10' },
    changes: { type: 'string', default: '0' },
    mode: { type: 'string', default: 'nftables' },
    rest: { type: 'string', default: '5' },
  },
  allowPositionals: true,
})
const ways = (positionals.length > 0 ? positionals : [`kube-proxy-ts=${shippedProgram}`]).map((each) => {
  const at = each.indexOf('=')
  return { name: each.slice(0, at), command: each.slice(at + 1).split(' ') }
})

enterOwnNetwork()
await using api = await openApi(process.env['KUBE_APISERVER'])
const cluster = [...clusterOf({ services: Number(values.services), endpointsPerService: Number(values.endpoints) })]
await api.load(cluster)
const slices = cluster.filter(({ kind }) => kind === 'EndpointSlice')
const changes = Number(values.changes)
const turn = { mode: values.mode, changes, restMs: changes === 0 ? 0 : Number(values.rest) * 1000 }
const figures = ways.map((): Figures[] => [])
for (let round = -1; round < Number(values.rounds); round++) {
  for (const [i, { command, name }] of ways.entries()) {
    // The first fills caches.
    const figure = await measureTurn(command, turn, api, slices)
    if (round >= 0) figures[i]!.push(figure)
    const cells = Object.entries(figure).map(([key, value]) => `${key} ${value.toFixed(1)}`)
    console.error(`${name}: ${cells.join(', ')}`)
  }
}
const keys = (Object.keys(columns) as (keyof typeof columns)[]).filter((key) => figures[0]?.[0]?.[key] !== undefined)
const rows = keys.map((key) => [
  columns[key],
  ...figures.map((each) => {
    const all = each.map((figure) => figure[key]!)
    return `${median(all).toFixed(1)} (${Math.min(...all).toFixed(1)})`
  }),
])
console.log(table(['', ...ways.map(({ name }) => name)], rows))
console.log(`
${values.services} services with ${values.endpoints} endpoints, ${values.changes} changes; median (lowest) of ${values.rounds} rounds.`)
process.exit(0)
