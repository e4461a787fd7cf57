// Connections through Services as the proxy tells of them: to `kube-proxy flows`, and in the flow log.

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FlowRecord } from '../../src/flows/flow-record.ts'
import { ControlClient } from '../../src/serve/control/client.ts'
import type { FlowsAnswer } from '../../src/serve/control/flows.ts'
import { messageOf } from '../../src/lib/errors.ts'
import { control, node, pods } from '../support/addresses.ts'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe, udpProbe } from '../support/netns/probe.ts'
import { ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'

const folder = mkdtempSync(join(tmpdir(), 'flows-'))
const socket = join(folder, 'proxy.sock')
const web = aService({ type: 'NodePort' })
const dns = aService({ ports: [{ protocol: 'UDP' }] })
/** Its endpoint refuses: nothing listens at that port. */
const closed = aService({ ports: [{ targetPort: 9 }] })
const web6 = aService({ families: [6] })
let rig: Rig

beforeAll(async () => {
  rig = await openRig()
  rig.network.node.run('sysctl', ['-qw', 'net.netfilter.nf_conntrack_acct=1'])
  rig.cluster.put(web, aSlice(web, ['localB']), dns, aSlice(dns, ['localB']), closed, aSlice(closed, ['localB']))
  rig.cluster.put(web6, aSlice(web6, ['localB'], { family: 6 }))
})
afterAll(async () => {
  await rig[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const nameOf = ({ metadata }: typeof web) => `${metadata.namespace}/${metadata.name}`

/** A client that goes on asking: one that does not has gone, for the proxy. */
class Looker {
  readonly #client = new ControlClient(socket)
  readonly flows: FlowRecord[] = []
  #last = 0
  #isOpen = true
  answer: FlowsAnswer | undefined

  static async open(query: Record<string, string> = {}): Promise<Looker> {
    const looker = new Looker()
    await looker.#ask(query)
    void looker.#askOn(query)
    return looker
  }

  async sees(what: string, isThere: (flow: FlowRecord) => boolean): Promise<FlowRecord> {
    await eventually(what, () => (this.flows.some(isThere) ? undefined : JSON.stringify(this.flows)))
    return this.flows.find(isThere)!
  }

  close(): void {
    this.#isOpen = false
    this.#client.close()
  }

  async #askOn(query: Record<string, string>): Promise<void> {
    while (this.#isOpen) {
      // It is closed while it waits.
      await this.#ask({ ...query, wait: '1000' }).catch(() => {})
    }
  }

  async #ask(query: Record<string, string>): Promise<void> {
    this.answer = await this.#client.ask<FlowsAnswer>('flows', { query: { ...query, after: String(this.#last) } })
    this.#last = this.answer.last
    this.flows.push(...this.answer.flows)
  }
}

/** The rules are in force a little before the control socket answers. */
async function settled(): Promise<void> {
  await rig.settled()
  await eventually('the proxy can be asked', async () => {
    const client = new ControlClient(socket)
    try {
      await client.ask('state', {})
    } catch (error) {
      return messageOf(error)
    } finally {
      client.close()
    }
    return undefined
  })
}

/** Whether a process of the node listens to notifications of the connection tracker. */
function isListening(): boolean {
  const CONNTRACK_GROUPS = 0b111
  const [, ...lines] = rig.network.node.run('cat', ['/proc/net/netlink']).trim().split('\n')
  return lines.some((line) => {
    const [, protocol, , groups = '0'] = line.trim().split(/\s+/)
    return protocol === '12' && (parseInt(groups, 16) & CONNTRACK_GROUPS) !== 0
  })
}

const ended = (service: typeof web, end?: string) => (flow: FlowRecord) =>
  flow.service.startsWith(nameOf(service)) && flow.event === 'ended' && (end === undefined || flow.end === end)

describe.each(['nftables', 'iptables', 'userspace'] as const)('%s mode', (mode) => {
  let proxy: ProxyProcess
  let looker: Looker

  beforeAll(async () => {
    const { kubeconfig } = rig.cluster
    proxy = await startProxy({
      netns: rig.network.node,
      mode,
      kubeconfig,
      args: [`--control-socket=${socket}`, '--connect-retry=false'],
    })
    await settled()
  })
  afterAll(async () => {
    looker.close()
    await proxy[Symbol.asyncDispose]()
  })

  test('nothing listens until somebody looks', async () => {
    expect(isListening()).toBe(false)
    looker = await Looker.open()
    expect(isListening()).toBe(true)
    expect(looker.answer).toMatchObject({ mode, leftOut: 0 })
  })

  test('a connection from a pod, with names, bytes and how long it took', async () => {
    await tcpProbe(rig.network.sources.localPod, { address: web.spec.clusterIP, port: 80 })
    const flow = await looker.sees('the connection has ended', ended(web))
    expect(flow).toMatchObject({
      protocol: 'TCP',
      client: { ip: pods.localA.ip[4] },
      frontend: { ip: web.spec.clusterIP, port: 80 },
      ...(mode === 'userspace' ? {} : { backend: { ip: pods.localB.ip[4], port: 8080, node: node.name } }),
    })
    expect(flow.end).toMatch(/^(closed|reset)$/)
    expect(flow.backend === undefined).toBe(mode === 'userspace')
    expect(flow.durationMs).toBeGreaterThan(0)
    expect(flow.receivedBytes).toBeGreaterThan(100)
    const lacks = looker.answer!.lacks.join('\n')
    expect(lacks.includes('no backends')).toBe(mode === 'userspace')
    // The test's proxy may list no pods.
    expect(lacks).not.toContain('no bytes')
  })

  test('through a node port, and over IPv6', async () => {
    const { nodePort } = web.spec.ports[0]! as { nodePort: number }
    await tcpProbe(rig.network.sources.external, { address: node.ip[4], port: nodePort })
    await looker.sees(
      'the node port is told',
      ({ service, frontend }) => service.startsWith(nameOf(web)) && frontend.port === nodePort,
    )
    await tcpProbe(rig.network.sources.localPod, { address: web6.spec.clusterIP, port: 80 })
    const flow = await looker.sees('IPv6 is told', ended(web6))
    expect(flow.client.ip).toBe(pods.localA.ip[6])
  })

  // In userspace mode the proxy is refused, not the client.
  if (mode !== 'userspace') {
    test('a backend that refuses', async () => {
      await tcpProbe(rig.network.sources.localPod, { address: closed.spec.clusterIP, port: 80 })
      const flow = await looker.sees('it is told', ended(closed))
      expect(flow).toMatchObject({ end: 'refused by the backend', backend: { port: 9 } })
    })
  }

  test('UDP begins', async () => {
    await udpProbe(rig.network.sources.localPod, { address: dns.spec.clusterIP, port: 80 })
    await looker.sees(
      'it is told',
      ({ service, event, protocol }) => service.startsWith(nameOf(dns)) && event === 'begun' && protocol === 'UDP',
    )
  })

  test('only those of one Service, for who asks for one', async () => {
    const other = await Looker.open({ service: nameOf(dns) })
    await tcpProbe(rig.network.sources.localPod, { address: web.spec.clusterIP, port: 80 })
    await udpProbe(rig.network.sources.localPod, { address: dns.spec.clusterIP, port: 80 })
    await other.sees('the datagram is told', ({ service }) => service.startsWith(nameOf(dns)))
    expect(other.flows.every(({ service }) => service.startsWith(nameOf(dns)))).toBe(true)
    other.close()
  })

  test('when the last client has gone, nothing listens any more', async () => {
    looker.close()
    await eventually('nothing listens', () => (isListening() ? 'the proxy still listens' : undefined))
    expect(proxy.logTail(50)).not.toMatch(/^E\d/m)
  })
})

test('kube-proxy flows prints a line for each', async () => {
  const { kubeconfig } = rig.cluster
  await using proxy = await startProxy({
    netns: rig.network.node,
    mode: 'nftables',
    kubeconfig,
    args: [`--control-socket=${socket}`],
  })
  await settled()
  await using flows = new ProxyProcess(rig.network.node, [
    'flows',
    nameOf(web),
    '--count=2',
    `--control-socket=${socket}`,
  ])
  await eventually('it looks', () => (isListening() ? undefined : flows.log()))
  await tcpProbe(rig.network.sources.localPod, { address: web.spec.clusterIP, port: 80 })
  expect(await flows.exited, flows.log() + proxy.logTail(5)).toBe('0')
  const from = pods.localA.ip[4].replaceAll('.', '\\.')
  expect(flows.log()).toMatch(new RegExp(`${from}:\\d+ .*-> ${nameOf(web)}.* on ${node.name}: begun\n`))
  expect(flows.log()).toMatch(/: (closed|reset) after [\d.]+ ms, sent \d+ B, received [\d.]+k? B\n/)
})

test('the flow log has a line for each connection, in a file and at a collector', async () => {
  const { kubeconfig } = rig.cluster
  const path = join(folder, 'flows.jsonl')
  const start = (target: string) =>
    startProxy({
      netns: rig.network.node,
      mode: 'nftables',
      kubeconfig,
      args: [`--control-socket=${socket}`, `--flow-log=${target}`],
    })
  const connect = () => tcpProbe(rig.network.sources.localPod, { address: web.spec.clusterIP, port: 80 })
  {
    await using proxy = await start(path)
    await settled()
    await connect()
    await eventually('the line is written', () => {
      const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
      const records = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
      const own = records.filter(({ service }) => String(service).startsWith(nameOf(web)))
      return own.length === 1 && own[0]!['event'] === 'ended' ? undefined : `${lines.join('\n')}\n${proxy.logTail(5)}`
    })
  }
  const bodies: string[] = []
  const collector = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      bodies.push(text)
      response.end('{}')
    })
  })
  await new Promise<void>((resolve) => collector.listen(0, control.ip[4], resolve))
  const { port } = collector.address() as AddressInfo
  {
    await using proxy = await start(`otlp(http://${control.ip[4]}:${port})`)
    await settled()
    await connect()
    await eventually('the collector has it', () =>
      bodies.some((body) => body.includes(web.metadata.name)) ? undefined : `${bodies.join('\n')}\n${proxy.logTail(5)}`,
    )
  }
  collector.close()
})
