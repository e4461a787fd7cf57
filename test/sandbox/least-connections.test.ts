// A slow pod of the sandbox, and what the page says of it: at random, and with least connections.

import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Snapshot } from '../../src/ui/protocol.ts'
import { eventually } from '../support/eventually.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { SandboxProcess } from './support/sandbox-process.ts'
import { type OpenPage, UiClient } from './support/ui-client.ts'

enterMachine()
const root = makeRoot()
const service = { namespace: 'default', service: 'whoami' }
let sandbox: SandboxProcess
let client: UiClient

beforeAll(async () => {
  sandbox = await SandboxProcess.start(root)
  client = new UiClient(/http:\S+token=\S+/.exec(sandbox.output)![0])
  await client.open()
})
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]()
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
})

/** What part of the last reports' connections the endpoint of a pod answered. */
function partOf(page: OpenPage, pod: string, snapshot: Snapshot): number {
  const rows = page.received.traffic.slice(-5).flatMap(({ outcomes }) => outcomes)
  const { address } = snapshot.services[0]!.ports[0]!.backends.find((each) => each.pod === `default/${pod}`)!
  const count = (which: typeof rows) => which.reduce((sum, { answered }) => sum + answered, 0)
  return count(rows.filter(({ backend }) => backend === address)) / Math.max(1, count(rows))
}

test('a slow pod gets a third of the connections at random, and few with least connections, and the page says why', async () => {
  using page = client.openPage()
  const { pods } = await page.until('all is there', ({ pods: all }) =>
    all.length > 3 ? undefined : `${all.length} pods`,
  )
  const { name } = pods.find(({ namespace }) => namespace === 'default')!
  await client.act({ action: 'load', from: 'outside', to: 'default/whoami', perSecond: 40 })
  const slow = await client.act({ action: 'fail', namespace: 'default', pod: name, how: 'slow' })
  expect(slow).toMatchObject({ ok: true, command: `kubectl annotate pod ${name} sandbox/fail=slow --overwrite` })
  await page.until('it is slow', (snapshot) => {
    const pod = snapshot.pods.find((each) => each.name === name)
    return pod?.fail === 'slow' && pod.ready ? undefined : JSON.stringify(pod)
  })
  await eventually('it gets its share', () => {
    const part = partOf(page, name, page.last!)
    return part > 0.2 ? undefined : `${part}`
  })
  const chosen = await client.act({ action: 'balance', ...service, value: 'least-connections' })
  expect(chosen).toMatchObject({ ok: true, did: 'Service whoami has balance least-connections' })
  await page.until('the page says so', ({ services }) =>
    services[0]!.balance === 'least-connections' ? undefined : services[0]!.balance,
  )
  await eventually(
    'the slow pod gets less',
    () => {
      const part = partOf(page, name, page.last!)
      return part < 0.12 ? undefined : `${part}`
    },
    { withinMs: 30_000 },
  )
  expect(page.received.change.some(({ why, ports }) => why === 'balance' && ports.includes('default/whoami'))).toBe(
    true,
  )
  const { stdout } = sandbox.run('exec', 'node-1', '--', './bin/kube-proxy', 'explain', 'whoami')
  expect(stdout).toMatch(/fewer\s+open\s+connections\s+get\s+more/)
})
