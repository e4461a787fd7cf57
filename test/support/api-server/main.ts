// The test API server as a program of its own, filled with services, for benchmarks:
//   node main.js --port 8001 --services 10000 --endpoints 10
// Prints its URL when it is ready; changes go over HTTP.

import { parseArgs } from 'node:util'
import { TestApiServer } from './api-server.ts'
import { clusterOf } from './sample-cluster.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    services: { type: 'string', default: '0' },
    endpoints: { type: 'string', default: '10' },
  },
})

const server = await TestApiServer.start({ port: Number(values.port) })
server.store.applyAll(clusterOf({ services: Number(values.services), endpointsPerService: Number(values.endpoints) }))
console.log(server.url)
