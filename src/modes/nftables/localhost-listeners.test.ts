import { createServer } from 'node:net'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { eventually } from '../../../test/support/eventually.ts'
import { InlineDataPath } from '../../../test/support/inline-data-path.ts'
import { nodeView, service, slice } from '../../../test/support/kube-objects.ts'
import { Listeners } from '../../data-path/listeners.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { ProblemLog } from '../../model/problems.ts'
import { ServiceModel } from '../../model/service-model.ts'
import { type ListenerFailure, LocalhostListeners } from './localhost-listeners.ts'

const node = nodeView({ localhostNodePorts: 'served by listeners' })
const range = { first: 1, last: 65_535 }

let path: InlineDataPath
let model: ServiceModel
let listeners: Listeners
let localhost: LocalhostListeners
let failures: ListenerFailure[]
const clock = new ManualClock()

beforeEach(() => {
  path = new InlineDataPath()
  model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  listeners = new Listeners({ family: 4, plane: path.plane, range: undefined, ephemeral: range })
  failures = []
  localhost = openLocalhost()
})
afterEach(() => {
  localhost.close()
  listeners.releaseAll()
  path[Symbol.dispose]()
})

function openLocalhost(): LocalhostListeners {
  const onFailed = (failure: ListenerFailure) => void failures.push(failure)
  // A thread closes what it was told to in its next turn.
  const settle = () => new Promise<void>((resolve) => setTimeout(resolve, 50))
  return new LocalhostListeners({ listeners, settle, clock, onFailed })
}

function put(name: string, nodePort: number): void {
  model.setService(
    service({ name, clusterIPs: [name === 'a' ? '10.96.0.1' : '10.96.0.2'], type: 'NodePort', ports: [{ nodePort }] }),
  )
  model.setSlice(slice([{ address: '10.64.7.1' }], { name, serviceName: name }))
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

const sync = () => localhost.sync(node, model.takeChanges())

test('a port goes from one service to another, and comes back after it was closed', async () => {
  const port = await freePort()
  put('a', port)
  sync()
  expect(localhost.open).toBe(1)
  model.deleteService('default/a')
  put('b', port)
  sync()
  expect([localhost.open, failures]).toEqual([1, []])
  model.deleteService('default/b')
  sync()
  expect(localhost.open).toBe(0)
  // The thread still has it.
  put('a', port)
  sync()
  await eventually('it is open', () => (listeners.find(`TCP ${port}`, 'node') === undefined ? 'it is not' : undefined))
  expect(failures).toEqual([])
})

test('a port that is taken is tried again, and told once', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  put('a', port)
  sync()
  await clock.advance(5000)
  expect([localhost.open, failures.map(({ isNews }) => isNews)]).toEqual([0, [true, false]])
  expect(localhost.failures()).toEqual([`default/a: another program has 127.0.0.1:${port}/TCP`])
  taken.close()
  await once(taken, 'close')
  await clock.advance(5000)
  expect([localhost.open, failures.length, localhost.failures()]).toEqual([1, 2, []])
})

test('listeners for which there is no file descriptor are reported of as one', async () => {
  let endFd = 3
  listeners = new Listeners({ family: 4, plane: path.plane, range: undefined, ephemeral: range, endFd: () => endFd })
  localhost = openLocalhost()
  put('a', await freePort())
  put('b', await freePort())
  sync()
  expect([localhost.open, failures.map(({ isNews }) => isNews)]).toEqual([0, [true, false]])
  endFd = 1000
  await clock.advance(5000)
  expect([localhost.open, failures.length]).toEqual([2, 2])
})

test('a proxy that takes over in this process keeps what is still wanted, and closes the rest', async () => {
  const [kept, gone] = [await freePort(), await freePort()]
  put('a', kept)
  put('b', gone)
  sync()
  const { pool } = listeners.get(`TCP ${kept}`)!
  localhost.close()
  localhost = openLocalhost()
  model.deleteService('default/b')
  model.takeChanges()
  localhost.syncAll(node, model.views())
  expect(listeners.get(`TCP ${kept}`)?.pool).toBe(pool)
  expect([localhost.open, [...listeners.entries()].length]).toEqual([1, 1])
})
