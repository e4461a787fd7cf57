// What may happen to a proxy, and what its services do meanwhile: in every mode, with the sandbox's own nodes and pods.

import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { eventually, staysQuiet } from '../support/eventually.ts'
import { patience } from '../support/patience.ts'
import type { ApiJson } from './support/api-access.ts'
import { ask } from './support/ask.ts'
import { describeModes } from './support/modes.ts'
import type { NetworkNamespace } from '../../packages/sandbox/src/netns/network-namespace.ts'
import type { SandboxProcess } from './support/sandbox-process.ts'

/** Much happens until then. */
const inTime = { withinMs: 15_000 }
const controller = '/apis/apps/v1/namespaces/default/deployments/whoami'

const flushAll = ['nft', 'flush ruleset']
const flushes: Readonly<Record<string, readonly (readonly string[])[]>> = {
  iptables: [flushAll, ['iptables', '-t', 'nat', '-F']],
  ipvs: [flushAll, ['ipvsadm', '--clear']],
}

let machine: NetworkNamespace
let node1: NetworkNamespace
let clusterIP: string

describeModes({
  flags: [],

  async prepare(sandbox) {
    machine = await sandbox.place('machine')
    node1 = await sandbox.place('node-1')
    const { spec } = await sandbox.api.get('/api/v1/namespaces/default/services/whoami')
    clusterIP = spec.clusterIP
  },

  define(test, mode) {
    /** In userspace mode the proxy carries the traffic: while it is away, so are its services. */
    const carriesTraffic = mode === 'userspace'

    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      test(`a proxy that ends by ${signal} is started again, and the service answers`, async (sandbox) => {
        const before = await node1Status(sandbox)
        const client = new Client(machine)
        process.kill(before.proxyPid!, signal)
        await eventually(
          'it runs again',
          async () => {
            const now = await node1Status(sandbox)
            return now.restarts > before.restarts && now.health === 'healthy' ? undefined : JSON.stringify(now)
          },
          inTime,
        )
        const failures = await client.stop()
        if (carriesTraffic) await eventually('the service answers again', complaint, inTime)
        else expect(failures).toEqual([])
        // And it follows what happens from then on.
        await scale(sandbox, 5)
        await eventually('it answers for new pods', () => answersFor(5), inTime)
        await scale(sandbox, 3)
        await eventually('it forgets old pods', () => answersFor(3), inTime)
        await expectNoTraces(sandbox)
      })
    }

    test('the service answers while the API server is away, and what changed meanwhile is made up for', async (sandbox) => {
      await scale(sandbox, 3)
      await eventually('three pods answer', () => answersFor(3), inTime)
      inNamespace(sandbox, 'control-plane', [
        'nft',
        'add table inet away; add chain inet away in { type filter hook input priority 0; }; add chain inet away out { type filter hook output priority 0; }; add rule inet away in tcp dport 6443 drop; add rule inet away out tcp sport 6443 drop',
      ])
      const client = new Client(machine)
      await scale(sandbox, 4)
      await eventually('the new pod runs', async () => {
        const pods = await defaultPods(sandbox)
        return pods.length === 4 ? undefined : `there are ${pods.length}`
      })
      expect(await answersFor(4), 'the proxy has not been told').toContain('3 of 4')
      expect(await client.stop()).toEqual([])
      inNamespace(sandbox, 'control-plane', ['nft', 'delete table inet away'])
      await eventually('it answers for the new pod', () => answersFor(4), { withinMs: 20_000 })
      await scale(sandbox, 3)
      await eventually('three pods answer', () => answersFor(3), inTime)
      await expectNoTraces(sandbox)
    })

    if (!carriesTraffic) {
      test('a proxy that starts while the API server is away leaves the rules as they are', async (sandbox) => {
        await eventually('three pods answer', () => answersFor(3), inTime)
        inNamespace(sandbox, 'control-plane', [
          'nft',
          'add table inet away; add chain inet away in { type filter hook input priority 0; }; add rule inet away in tcp dport 6443 reject with tcp reset',
        ])
        const client = new Client(machine)
        const before = await node1Status(sandbox)
        process.kill(before.proxyPid!, 'SIGKILL')
        await eventually('it is started again', async () => {
          const { restarts } = await node1Status(sandbox)
          return restarts > before.restarts ? undefined : 'not yet'
        })
        await staysQuiet('requests are answered', () => client.failures[0], { forMs: 1000 })
        expect(await client.stop()).toEqual([])
        inNamespace(sandbox, 'control-plane', ['nft', 'delete table inet away'])
        await eventually(
          'it is healthy',
          async () => {
            const { health } = await node1Status(sandbox)
            return health === 'healthy' ? undefined : health
          },
          { withinMs: 20_000 },
        )
      })
    }

    for (const command of flushes[mode] ?? [flushAll]) {
      test(`what the operator flushes comes back: ${command.join(' ')}`, async (sandbox) => {
        await eventually('the service answers', complaint)
        inNamespace(sandbox, 'node-1', command)
        await eventually('the service answers again', complaint, { withinMs: 10_000 })
        await eventually('for all pods', () => answersFor(3), inTime)
        await expectNoTraces(sandbox)
      })
    }

    test('pods that come and go all the time cost no request', async (sandbox) => {
      await letPodsServeOn(sandbox)
      const clients = [new Client(machine), new Client(node1)]
      for (const replicas of [12, 2, 9, 1, 6, 3]) {
        await scale(sandbox, replicas)
        await sleep(400)
      }
      await eventually('three pods answer', () => answersFor(3), { withinMs: 10_000 })
      for (const client of clients) expect(await client.stop()).toEqual([])
      await eventually(
        'the others are gone',
        async () => {
          const pods = await defaultPods(sandbox)
          return pods.length === 3 ? undefined : `${pods.length} are left`
        },
        inTime,
      )
      await expectNoTraces(sandbox)
    })

    // The last: afterwards there is no sandbox.
    test('kill -9 of the sandbox ends its proxies, and down clears the rest', async (sandbox) => {
      const { nodes } = await sandbox.status()
      const down = () => sandbox.run('down')
      sandbox.signal('SIGKILL')
      await sandbox.exited
      await eventually('the proxies are gone', () => {
        const left = nodes.filter(({ proxyPid }) => existsSync(`/proc/${proxyPid}`))
        return left.length === 0 ? undefined : left.map(({ name }) => name).join()
      })
      expect(down()).toMatchObject({ status: 0, stderr: '' })
    })
  },
})

async function node1Status(sandbox: SandboxProcess) {
  const { nodes } = await sandbox.status()
  return nodes[0]!
}

/** Without those of the DNS service. */
async function defaultPods(sandbox: SandboxProcess) {
  const { pods } = await sandbox.status()
  return pods.filter(({ namespace }) => namespace === 'default')
}

function scale(sandbox: SandboxProcess, replicas: number): Promise<unknown> {
  return sandbox.api.patch(`${controller}/scale`, { spec: { replicas } })
}

/**
 * For as long as a busy machine may take to tell all proxies of a deletion: in iptables mode they write once a second, and the
 * two seconds of a pod that says nothing are little more.
 */
async function letPodsServeOn(sandbox: SandboxProcess): Promise<void> {
  const deployment = await sandbox.api.get(controller)
  const seconds = Math.ceil(2 + 2 * patience())
  for (const container of deployment.spec.template.spec.containers)
    container.lifecycle = { preStop: { sleep: { seconds } } }
  await sandbox.api.put(controller, deployment)
  await eventually(
    'pods that serve on have taken the place of the others',
    async () => {
      const { items } = await sandbox.api.get('/api/v1/namespaces/default/pods')
      const isNew = (pod: ApiJson) => pod.spec.containers[0].lifecycle !== undefined
      return items.length === 3 && items.every(isNew) ? undefined : `${items.filter(isNew).length} of ${items.length}`
    },
    { withinMs: 20_000 },
  )
  await eventually(
    'the rules lead to them alone: a mode may take a second and more to hear that the others have gone',
    async () => {
      const client = new Client(machine)
      await sleep(1500)
      const [failure] = await client.stop()
      return failure
    },
    { withinMs: 20_000 },
  )
}

function inNamespace(sandbox: SandboxProcess, place: string, command: readonly string[]): void {
  expect(sandbox.run('exec', place, '--', ...command)).toMatchObject({ status: 0, stderr: '' })
}

/** Whether the kernel of any node still knows of pods that are gone. */
async function expectNoTraces(sandbox: SandboxProcess): Promise<void> {
  await eventually('no trace of old pods is left', async () => {
    const { nodes, pods } = await sandbox.status()
    const expected = new Set(pods.flatMap(({ addresses }) => addresses))
    const traces = nodes.flatMap(({ name }) => {
      const dump = 'nft list ruleset; [ ! -e /proc/net/ip_vs ] || ipvsadm -Ln'
      const { stdout } = sandbox.run('exec', name, '--', 'sh', '-c', dump)
      // The first address of each range is the node's own.
      const found = stdout.match(/\b10\.244\.\d+\.(?!1\b)\d+\b(?!\/\d)/g) ?? []
      return found.filter((ip) => !expected.has(ip)).map((ip) => `${ip} on ${name}`)
    })
    return traces.length === 0 ? undefined : traces.join(', ')
  })
}

async function complaint(): Promise<string | undefined> {
  const outcome = await ask(machine, clusterIP, 3000)
  return typeof outcome === 'string' ? outcome : undefined
}

/** Whether exactly so many pods answer; a complaint otherwise. */
async function answersFor(count: number): Promise<string | undefined> {
  const pods = new Set<string>()
  for (let i = 0; i < 20 * count; i++) {
    const outcome = await ask(machine, clusterIP, 3000)
    if (typeof outcome === 'string') return outcome
    pods.add(outcome.pod)
  }
  return pods.size === count ? undefined : `${pods.size} of ${count} answer: ${[...pods].join()}`
}

/** A client that asks the service all the time. */
class Client {
  readonly failures: string[] = []
  readonly #running: Promise<void>
  #stopped = false

  constructor(from: NetworkNamespace) {
    this.#running = this.#run(from)
  }

  async #run(from: NetworkNamespace): Promise<void> {
    while (!this.#stopped) {
      const outcome = await ask(from, clusterIP, 3000)
      if (typeof outcome === 'string') this.failures.push(outcome)
      await sleep(5)
    }
  }

  /** Returns what failed. */
  async stop(): Promise<readonly string[]> {
    this.#stopped = true
    await this.#running
    return this.failures
  }
}
