// The page's server against a real sandbox, in every mode that runs here: what it shows is so, what it does is done.

import { spawnSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { ControlClient } from '../../src/serve/control/client.ts'
import { commandFor } from '../../src/ui/commands.ts'
import type { DoctorAnswer, ExplainAnswer, ServiceDetail, Snapshot } from '../../src/ui/protocol.ts'
import { eventually } from '../support/eventually.ts'
import { describeModes } from './support/modes.ts'
import { program, type SandboxProcess } from './support/sandbox-process.ts'
import { UiClient } from './support/ui-client.ts'

const whoami = { namespace: 'default', name: 'whoami' }
/** What the difference of one more endpoint has in the words of the mode's tool. */
const words: Readonly<Record<string, RegExp>> = {
  nftables: /^add element ip kube-proxy service-endpoints \{ .*10\.244\.\d\.\d+ \. 3000/,
  iptables: /^-t nat -A KUBE-SEP-\w+ .*--to-destination 10\.244\.\d\.\d+:3000/,
  ipvs: /^ipvsadm -a -t \S+ -r 10\.244\.\d\.\d+:3000 /,
  userspace: /^# default\/whoami\/TCP: .* carries to (10\.244\.\d\.\d+:3000(, )?){4}/,
}

let client: UiClient

describeModes({
  flags: [],

  async prepare(sandbox) {
    client = new UiClient(urlOf(sandbox))
    await client.open()
  },

  define(test, mode) {
    test('the page comes with what there is', async (sandbox) => {
      const snapshot = await client.open()
      expect(snapshot).toMatchObject({ kind: 'sandbox', name: sandbox.name, can: { act: true } })
      const isReady = { state: 'ready', restarts: 0, error: null }
      expect(snapshot.nodes).toMatchObject([
        { name: 'node-1', mode, proxy: isReady },
        { name: 'node-2', mode, proxy: isReady },
      ])
      const service = serviceOf(snapshot)
      const { status } = await sandbox.api.get('/api/v1/namespaces/default/services/whoami')
      expect(service.loadBalancerIPs).toEqual([status.loadBalancer.ingress[0].ip])
      expect(service).toMatchObject({ type: 'LoadBalancer', selector: { app: 'whoami' }, system: false })
      const { items } = await sandbox.api.get('/api/v1/namespaces/default/pods')
      const pods = (items as { metadata: { name: string } }[]).map(({ metadata }) => `default/${metadata.name}`)
      const backends = service.ports[0]!.backends
      expect(new Set(backends.map(({ pod }) => pod))).toEqual(new Set(pods))
      expect(backends.every(({ ready, notOn }) => ready && Object.keys(notOn).length === 0)).toBe(true)
    })

    test('nothing is counted or remembered before a page is open, nor after', async (sandbox) => {
      await isQuiet(sandbox)
      {
        using page = client.openPage()
        await eventually('a page gets traffic', () => (page.received.traffic.length > 1 ? undefined : 'not yet'))
        if (mode !== 'userspace') expect(await countingTables(sandbox)).toBe(2)
      }
      await eventually('the tables are gone', async () =>
        (await countingTables(sandbox)) === 0 ? undefined : 'still there',
      )
      await isQuiet(sandbox)
    })

    test('a change is reported with what it did to the kernel', async () => {
      using page = client.openPage()
      await page.until('there are three backends', hasBackends(3))
      const answer = await client.act({ action: 'scale', ...deployment, replicas: 4 })
      expect(answer).toMatchObject({ ok: true, command: 'kubectl scale deployment whoami --replicas=4' })
      await page.until('there are four backends', hasBackends(4))
      for (const node of ['node-1', 'node-2']) {
        await eventually(`${node} has told of it`, () => {
          const found = page.received.change.find(
            (change) => change.node === node && change.commands.some((line) => words[mode]!.test(line)),
          )
          if (found === undefined) {
            return JSON.stringify(
              page.received.change.filter((change) => change.node === node).map(({ commands }) => commands),
            )
          }
          expect(found).toMatchObject({ mode, family: 4, why: 'event', ports: ['default/whoami'] })
          expect(found.error).toBeUndefined()
          expect(found.objects).toMatchObject([{ kind: 'EndpointSlice', namespace: 'default', verb: 'set' }])
          expect(found.receivedMs!).toBeLessThanOrEqual(found.beganMs)
          expect(found.doneMs - found.beganMs).toBeGreaterThan(0)
          expect(found.operations).toBeGreaterThan(mode === 'userspace' ? -1 : 0)
          return undefined
        })
      }
      await client.act({ action: 'scale', ...deployment, replicas: 3 })
      await page.until('there are three again', hasBackends(3))
    })

    test('what a load meets is counted, and told by pod', async () => {
      using page = client.openPage()
      await page.until('there are three backends', hasBackends(3))
      const request = { from: 'outside', to: 'default/whoami', perSecond: 40 }
      expect(await client.act({ action: 'load', ...request })).toMatchObject({ ok: true })
      await eventually('all pods have answered', () => {
        const { byPod = {}, failed } = page.received.load.at(-1) ?? {}
        expect(failed ?? 0).toBe(0)
        return Object.keys(byPod).length === 3 ? undefined : JSON.stringify(byPod)
      })
      const backends = serviceOf(page.last!).ports[0]!.backends.map(({ address }) => address)
      await eventually('each backend has its share', () => {
        const rows = page.received.traffic.flatMap(({ nodes }) => nodes.flatMap((node) => node.rows))
        // The userspace mode tells frontends and backends apart: what came, and where the proxy carried it.
        if (mode === 'userspace')
          expect(rows.filter((row) => row.frontend !== null && row.backend !== null)).toEqual([])
        const seen = new Set(rows.filter(({ connections }) => connections > 0).map(({ backend }) => backend))
        return backends.every((backend) => seen.has(backend)) ? undefined : JSON.stringify([...seen])
      })
      await client.act({ action: 'load-end' })
      await eventually('its end has come', () => (page.received.load.at(-1)?.running === false ? undefined : 'it runs'))
    })

    test('what some clients alone are denied is counted', async (sandbox) => {
      using page = client.openPage()
      const snapshot = await page.until('both are ready', bothReady)
      const [address] = serviceOf(snapshot).loadBalancerIPs
      const ranges = (loadBalancerSourceRanges: string[] | null) =>
        sandbox.api.patch('/api/v1/namespaces/default/services/whoami', { spec: { loadBalancerSourceRanges } })
      await ranges(['192.0.2.0/24'])
      await eventually(
        'it is told who is not let in',
        () => {
          sandbox.run('exec', 'machine', '--', 'curl', '-s', '--max-time', '1', `http://${address}:3000`)
          const rows = page.received.traffic.flatMap(({ nodes }) => nodes.flatMap((node) => node.rows))
          const found = rows.find(({ dropped }) => dropped > 0)
          if (found === undefined) return JSON.stringify(rows)
          expect(found).toMatchObject({
            service: 'default/whoami',
            frontend: `tcp ${address}:3000`,
            backend: null,
            refused: 0,
          })
          return undefined
        },
        { withinMs: 15_000 },
      )
      await ranges(null)
      await page.until('all are let in again', (now) => serviceOf(now).loadBalancerSourceRanges[0])
    })

    test('a service is reported in both languages, and they agree', async () => {
      const { pods } = await client.open()
      const detail = await client.ask<ServiceDetail>('/api/service?namespace=default&name=whoami&node=node-2')
      expect(detail).toMatchObject({ mode, node: 'node-2', kernel: [{ family: 4, error: null, differences: [] }] })
      expect(detail.frontends.map(({ kind }) => kind)).toEqual(['clusterIP', 'loadBalancerIP', 'nodePort'])
      expect(detail.backends).toHaveLength(3)
      for (const { eligible, pod, objects, id } of detail.backends) {
        expect(eligible).toBe(true)
        expect(pods.map(({ namespace, name }) => `${namespace}/${name}`)).toContain(pod)
        // Behind its listener, the userspace mode chooses by itself.
        if (mode !== 'userspace') expect(objects.length).toBeGreaterThan(0)
        for (const object of objects) {
          expect(detail.objects.find((each) => each.id === object)?.backends).toContain(id)
        }
      }
      for (const { objects, id } of detail.frontends) {
        expect(objects.length).toBeGreaterThan(0)
        expect(detail.objects.find((each) => each.id === objects[0])?.frontends).toContain(id)
      }
    })

    test('a packet goes as it was said, from a pod, a node and the machine outside', async () => {
      const { pods } = await client.open()
      const pod = pods.find(({ namespace, node }) => namespace === 'default' && node === 'node-1')!
      for (const from of [`default/${pod.name}`, 'node-1', 'outside']) {
        const answer = await client.post<ExplainAnswer>('/api/explain', { from, to: 'default/whoami', send: true })
        expect(answer.node).toBe('node-1')
        const { explanation } = answer
        expect(explanation).toMatchObject({
          agreement: 'agrees',
          outcome: 'to',
          sent: { answer: 'connected', differences: [] },
        })
        // What iptables-legacy does is not traced by nft.
        if (mode === 'nftables') expect(explanation.sent).toMatchObject({ outcome: 'to' })
        expect(answer.svg).toMatch(/^<svg /)
        expect(answer.command).toContain('explain')
      }
    })

    test('rules that are flushed come back, and the timeline says so', async () => {
      using page = client.openPage()
      const { apiServer } = await page.until('there are three backends', hasBackends(3))
      expect(apiServer.state).toBe('there')
      const flushed = await client.act({ action: 'flush', node: 'node-1' })
      // Its program is not installed everywhere.
      if (mode === 'ipvs' && !flushed.ok) return expect(flushed.error).toContain('ipvsadm')
      expect(flushed).toMatchObject({ ok: true })
      await eventually(
        'they are restored',
        () => {
          const healed = page.received.change.find(
            ({ why, node, operations }) => why === 'heal' && node === 'node-1' && operations > 0,
          )
          return healed === undefined ? JSON.stringify(page.received.change.map(({ why }) => why)) : undefined
        },
        { withinMs: 15_000 },
      )
      await page.until('it counts as drift', ({ nodes }) =>
        nodes[0]!.proxy.families.some(({ drifts }) => drifts > 0) ? undefined : 'not yet',
      )
    })

    // The rest is the same in every mode.
    if (mode !== 'nftables') return

    test('a client asks from the first second; one whose service goes gives way to another', async (sandbox) => {
      const services = '/api/v1/namespaces/default/services'
      await sandbox.api.create(services, {
        metadata: { name: 'other' },
        spec: { selector: { app: 'whoami' }, ports: [{ port: 80, targetPort: 3000 }] },
      })
      using page = client.openPage()
      await page.until('there are two services', (snapshot) =>
        snapshot.services.some(({ name }) => name === 'other') ? undefined : 'one',
      )
      await client.act({ action: 'load', from: 'outside', to: 'default/other', perSecond: 20 })
      await eventually('it is answered', () => {
        const load = page.received.load.at(-1)
        return load?.request.to === 'default/other' && load.answered > 0 ? undefined : JSON.stringify(load)
      })
      await sandbox.api.delete(`${services}/other`)
      await eventually('the other service is asked', () => {
        const load = page.received.load.at(-1)
        return load?.request.to === 'default/whoami' && load.running && load.answered > 0
          ? undefined
          : JSON.stringify(load)
      })
      expect(page.received.traffic.flatMap(({ outcomes }) => outcomes)).not.toEqual([])
    })

    test('pods that fail are shown, and what is shown is what was done', async () => {
      using page = client.openPage()
      const before = await page.until('there are three backends', hasBackends(3))
      const { name } = before.pods.find(({ namespace }) => namespace === 'default')!
      const how = await client.act({ action: 'fail', namespace: 'default', pod: name, how: 'die' })
      expect(how).toMatchObject({ ok: true, command: `kubectl annotate pod ${name} sandbox/fail=die --overwrite` })
      await page.until('it is not ready, and no node uses it', (snapshot) => {
        const pod = snapshot.pods.find((each) => each.name === name)
        const backend = serviceOf(snapshot).ports[0]!.backends.find((each) => each.pod === `default/${name}`)
        const isOut = pod?.fail === 'die' && !pod.ready && Object.keys(backend?.notOn ?? {}).length === 2
        return isOut ? undefined : JSON.stringify([pod, backend])
      })
      await client.act({ action: 'fail', namespace: 'default', pod: name, how: 'none' })
      await page.until('it is well again', hasBackends(3))
    })

    test('policies and affinity are changed', async () => {
      using page = client.openPage()
      await page.until('there are three backends', hasBackends(3))
      const policy = { action: 'policy', ...service, field: 'externalTrafficPolicy' } as const
      expect(await client.act({ ...policy, value: 'Local' })).toMatchObject({ ok: true })
      await client.act({ action: 'affinity', ...service, value: 'ClientIP' })
      await page.until('both are shown', (snapshot) => {
        const { externalTrafficPolicy, affinitySeconds, healthCheckNodePort } = serviceOf(snapshot)
        const isShown = externalTrafficPolicy === 'Local' && affinitySeconds === 10_800 && healthCheckNodePort !== null
        return isShown ? undefined : JSON.stringify(serviceOf(snapshot))
      })
      await client.act({ ...policy, value: 'Cluster' })
      await client.act({ action: 'affinity', ...service, value: 'None' })
      const refused = await client.act({
        action: 'policy',
        ...service,
        service: 'nonsense',
        field: 'internalTrafficPolicy',
        value: 'Local',
      })
      expect(refused).toMatchObject({ ok: false, error: 'There is no Service default/nonsense' })
    })

    test('a proxy that is killed is away, and back', async () => {
      using page = client.openPage()
      const { nodes } = await page.until('both are ready', bothReady)
      const { pid } = nodes[1]!.proxy
      const killed = await client.act({ action: 'kill-proxy', node: 'node-2' })
      expect(killed).toMatchObject({ ok: true, command: `kill -KILL ${pid}` })
      await page.until('it is another process', (snapshot) => {
        const { proxy } = snapshot.nodes[1]!
        return proxy.state === 'ready' && proxy.restarts === 1 && proxy.pid !== pid ? undefined : JSON.stringify(proxy)
      })
      expect(page.shown.some((snapshot) => snapshot.nodes[1]!.proxy.state !== 'ready')).toBe(true)
    })

    test('without the API server the nodes stay as they are, and follow when it is back', async (sandbox) => {
      using page = client.openPage()
      await page.until('both are ready', bothReady)
      expect(await client.act({ action: 'api-server-away' })).toMatchObject({ ok: true })
      await page.until('it is away', ({ apiServer }) => (apiServer.state === 'away' ? undefined : apiServer.state))
      await client.act({ action: 'scale', ...deployment, replicas: 4 })
      await page.until('the API has a pod that no node knows of', (snapshot) => {
        const { backends } = serviceOf(snapshot).ports[0]!
        const unknown = backends.find(
          ({ notOn }) => Object.values(notOn).join() === 'its proxy does not know of it,its proxy does not know of it',
        )
        return unknown === undefined ? JSON.stringify(backends) : undefined
      })
      // At a terminal, as the page shows it.
      expect(typed(sandbox, commandFor({ action: 'api-server-back' }, page.last!))).toMatchObject({ status: 0 })
      await page.until('they know of it', hasBackends(4))
      await page.until('it is there', ({ apiServer }) => (apiServer.state === 'there' ? undefined : apiServer.state))
      await client.act({ action: 'scale', ...deployment, replicas: 3 })
      await page.until('there are three again', hasBackends(3))
    })

    test('a node runs in another mode, by click and by command', async (sandbox) => {
      const other = 'iptables'
      using page = client.openPage()
      await page.until('both are ready', bothReady)
      const changed = await client.act({ action: 'mode', node: 'node-2', mode: other })
      expect(changed).toMatchObject({
        ok: true,
        command: expect.stringMatching(`sandbox .*mode node-2 ${other}$`) as string,
      })
      await page.until(`node-2 runs in mode ${other}`, runsIn(other))
      await sandbox.api.get('/api/v1/namespaces/default/pods')
      expect(
        await client.post<ExplainAnswer>('/api/explain', { from: 'node-2', to: 'default/whoami', send: true }),
      ).toMatchObject({
        explanation: { agreement: 'agrees', question: { mode: other }, sent: { answer: 'connected' } },
      })
      const back = sandbox.run('mode', 'node-2', mode)
      expect(back).toMatchObject({ status: 0, stdout: `The proxy of node-2 runs in mode ${mode}.\n` })
      await page.until(`node-2 runs in mode ${mode}`, runsIn(mode))
    })

    test('a pod that is deleted is replaced', async () => {
      using page = client.openPage()
      const before = await page.until('there are three backends', hasBackends(3))
      const { name } = before.pods.find(({ namespace }) => namespace === 'default')!
      expect(await client.act({ action: 'delete-pod', namespace: 'default', pod: name })).toMatchObject({ ok: true })
      await page.until('another has come', (snapshot) => {
        const isGone = !snapshot.pods.some((each) => each.name === name)
        return isGone ? hasBackends(3)(snapshot) : 'it is there'
      })
    })

    test('kube-proxy ui shows the same of a node, and changes nothing', async (sandbox) => {
      const started = startUi(sandbox)
      try {
        using from = await sandbox.place('node-1')
        const url = await started.url
        const browser = new UiClient(url, from)
        const snapshot = await browser.open()
        expect(snapshot).toMatchObject({ kind: 'node', name: 'node-1', can: { act: false, send: 'node' }, pods: [] })
        expect(serviceOf(snapshot).ports[0]!.backends).toHaveLength(3)
        const refused = await browser.send(`${browser.origin}/api/act`, { body: '{"action":"flush","node":"node-1"}' })
        expect(refused.status).toBe(403)
        const said = await browser.post<ExplainAnswer>('/api/explain', {
          from: 'node',
          to: 'default/whoami',
          send: true,
        })
        expect(said).toMatchObject({
          node: 'node-1',
          explanation: { agreement: 'agrees', sent: { answer: 'connected' } },
        })
        expect(await browser.post<DoctorAnswer>('/api/doctor', {})).toMatchObject({ finding: null, services: [] })
        const detail = await browser.ask<ServiceDetail>('/api/service?namespace=default&name=whoami')
        expect(detail.kernel).toMatchObject([{ error: null, differences: [] }])
        using page = browser.openPage()
        await client.act({ action: 'scale', ...deployment, replicas: 4 })
        await page.until('it follows', hasBackends(4))
        await eventually('the change is told', () =>
          page.received.change.some(({ commands }) => commands.some((line) => words[mode]!.test(line)))
            ? undefined
            : 'not yet',
        )
        await client.act({ action: 'scale', ...deployment, replicas: 3 })
        await page.until('it follows back', hasBackends(3))
        started.end()
        await eventually('the page has got the end', () => (page.received.end.length === 1 ? undefined : 'not yet'))
      } finally {
        started.end()
      }
    })
  },
})

const deployment = { namespace: 'default', deployment: 'whoami' } as const
const service = { namespace: 'default', service: 'whoami' } as const

function urlOf({ output }: SandboxProcess): string {
  return /^ {2}(http:\/\/127\.0\.0\.1:\d+\/\?token=\S+)$/m.exec(output)?.[1] ?? ''
}

function serviceOf({ services }: Snapshot): Snapshot['services'][number] {
  return services.find(({ namespace, name }) => namespace === whoami.namespace && name === whoami.name)!
}

/** Of the example, all of which every node uses. */
function hasBackends(count: number): (snapshot: Snapshot) => string | undefined {
  return (snapshot) => {
    const { backends } = serviceOf(snapshot).ports[0]!
    const isSo = backends.length === count && backends.every(({ notOn }) => Object.keys(notOn).length === 0)
    return isSo ? undefined : JSON.stringify(backends)
  }
}

function bothReady({ nodes }: Snapshot): string | undefined {
  const states = nodes.map(({ proxy }) => proxy.state).join()
  return states === 'ready,ready' ? undefined : states
}

function runsIn(mode: string): (snapshot: Snapshot) => string | undefined {
  return ({ nodes }) => {
    const { mode: found, proxy } = nodes[1]!
    return found === mode && proxy.state === 'ready' ? undefined : `${found} ${proxy.state} ${proxy.error}`
  }
}

/** Of both nodes. */
async function countingTables(sandbox: SandboxProcess): Promise<number> {
  let count = 0
  for (const name of ['node-1', 'node-2']) {
    using place = await sandbox.place(name)
    const { stdout } = place.enter(() => spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }))
    if (stdout.includes('kube-proxy-counters')) count++
  }
  return count
}

/** A proxy that remembers nothing gives a new client its last comparison at most. */
async function isQuiet(sandbox: SandboxProcess): Promise<void> {
  expect(await countingTables(sandbox)).toBe(0)
  const log = spawnSync('tail', ['-n', '1', sandbox.path('node-1.log')], { encoding: 'utf8' }).stdout
  expect(log).not.toContain('Counting traffic, because')
  const control = new ControlClient(sandbox.path('node-1.sock'))
  try {
    const { changes } = await control.ask<{ changes: { why: string }[] }>('changes')
    expect(changes.filter(({ why }) => why === 'event')).toEqual([])
  } finally {
    control.close()
    await sleep(20)
  }
}

function typed(sandbox: SandboxProcess, command: string) {
  const env = { ...process.env, KUBE_PROXY_SANDBOX_DIR: sandbox.root }
  return spawnSync('sh', ['-c', command], { encoding: 'utf8', env })
}

function startUi(sandbox: SandboxProcess): { readonly url: Promise<string>; end(): void } {
  const child = sandbox.start('exec', 'node-1', '--', program, 'ui')
  return {
    url: new Promise((resolve, reject) => {
      let output = ''
      child.stdout!.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const [url] = /http:\S+/.exec(output) ?? []
        if (url !== undefined && output.includes('\n')) resolve(url)
      })
      child.once('exit', (code) => reject(new Error(`kube-proxy ui ended with ${code}`)))
    }),
    end: () => void child.kill('SIGTERM'),
  }
}
