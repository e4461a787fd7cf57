// The test of a cluster, from an empty namespace to a report.

import { setTimeout as sleep } from 'node:timers/promises'
import type { UpgradingClient } from '../kube/api-client.ts'
import { ApiError } from '../kube/api-error.ts'
import { type Family, ipFamily } from '../lib/ip.ts'
import { programVersion } from '../lib/program-version.ts'
import {
  type AssignedService,
  type Check,
  type Client,
  type Facts,
  type Phase,
  phases,
  type Row,
  type TestNode,
} from './checks.ts'
import { allowedSources, endpointsOf } from './endpoints.ts'
import { planChecks } from './plan-checks.ts'
import { type Dialler, openDialler, ownDialler } from './clients.ts'
import * as cluster from './cluster.ts'
import { type CheckResult, findCauses } from './findings.ts'
import { SERVICE_PORT, type ServiceName, serviceNames } from './objects.ts'
import type { Attempt } from './protocol.ts'
import { describeMeasures, nextCommand, type ProxyOfNode, reportedCheck, type TestReport } from './report.ts'
import { judge } from './verdict.ts'

export interface TestOptions {
  readonly client: UpgradingClient
  /** How it was called, for the next command. */
  readonly program: string
  /** Undefined: that of this program where it runs in the cluster, else the one of this version. */
  readonly image: string | undefined
  /** Empty: all that are ready. */
  readonly nodes: readonly string[]
  /** How long a proxy may take to follow a change. */
  readonly settleMs: number
  readonly outside: boolean
  readonly skip: ReadonlySet<Row>
  /** Leaves everything in place. */
  readonly keep: boolean
  readonly signal: AbortSignal
  readonly onProgress: (text: string) => void
}

/** An image may have to be pulled. */
const PODS_WITHIN_MS = 120_000
const RETRY_MS = 500

/** The caller's signal ended the test; what it had made is gone. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError'
}

export async function runClusterTest(options: TestOptions): Promise<TestReport> {
  const { client, onProgress } = options
  const startMs = performance.now()
  const ended = new AbortController()
  const signal = AbortSignal.any([options.signal, ended.signal])
  let isClaimed = false
  let report: TestReport
  try {
    const found = chooseNodes(await cluster.readNodes(client), options.nodes)
    await cluster.claimNamespace(client, signal, onProgress)
    isClaimed = true
    report = await testNodes({ ...options, signal }, found, startMs)
  } catch (error) {
    ended.abort()
    // What is wrong with the API server may keep it from removing as well; the reason is what was first.
    if (isClaimed) await leave(options).catch(() => {})
    throw options.signal.aborted ? new InterruptedError('interrupted', { cause: error }) : error
  }
  ended.abort()
  await leave(options)
  return report
}

async function leave({ client, keep, signal, onProgress }: TestOptions): Promise<void> {
  if (keep && !signal.aborted) return cluster.releaseNamespace(client)
  onProgress('removing everything')
  await cluster.removeNamespace(client, new AbortController().signal)
}

function chooseNodes(found: readonly cluster.FoundNode[], wanted: readonly string[]): cluster.FoundNode[] {
  const missing = wanted.find((name) => !found.some((node) => node.name === name))
  if (missing !== undefined)
    throw new Error(`Cannot test node ${missing}: there are ${found.map(({ name }) => name).join(', ')}`)
  return found.filter(({ name }) => wanted.length === 0 || wanted.includes(name))
}

async function testNodes(
  options: TestOptions,
  found: readonly cluster.FoundNode[],
  startMs: number,
): Promise<TestReport> {
  const { client, signal, onProgress } = options
  const proxies = await cluster.readProxies(client).catch((): cluster.FoundProxy[] => [])
  const image = options.image ?? proxies.find(({ isOurs }) => isOurs)?.image ?? `kube-proxy-ts:${programVersion}`
  const usable = found.filter(({ problem }) => problem === undefined)
  const names = (node: string): readonly [string, string] => {
    const number = found.findIndex(({ name }) => name === node) + 1
    return [`pod-${number}`, `host-${number}`]
  }
  const pods = usable.flatMap(({ name: node }) => {
    const [pod, host] = names(node)
    return [
      { name: pod, node, kind: 'pod' },
      { name: host, node, kind: 'node' },
    ] as const
  })
  await cluster.createPods(client, pods, image, signal)
  const onCount = (ready: number) => onProgress(`probe pods: ${ready} of ${pods.length} ready`)
  const states = await cluster.waitForPods(client, { withinMs: PODS_WITHIN_MS, signal, onCount })
  const { nodes, problems } = cluster.testNodes(found, states, names)
  if (nodes.length === 0) throw new Error(`Cannot test any node: ${problems.join('; ') || 'the cluster has none'}`)
  const { facts, notes } = await createServices(options, nodes)
  const diallers = await openDiallers(options, nodes, names)
  try {
    const results = await runPhases(options, facts, diallers)
    return reportOf({ facts, results, proxies, problems, notes, startMs, program: options.program })
  } finally {
    for (const dialler of diallers.values()) dialler.close()
  }
}

async function createServices(
  { client, outside, skip, onProgress }: TestOptions,
  nodes: readonly TestNode[],
): Promise<{ readonly facts: Facts; readonly notes: readonly string[] }> {
  const notes: string[] = []
  let hasExternalIPs = true
  const services: Partial<Record<ServiceName, AssignedService>> = {}
  let families: readonly Family[] = []
  for (const [i, name] of serviceNames.entries()) {
    onProgress(`Services: ${i + 1} of ${serviceNames.length}`)
    const settings = () => ({ allowedSources: allowedSources(nodes), externalIPs: hasExternalIPs })
    services[name] = await cluster.createService(client, name, settings()).catch((error: unknown) => {
      // The admission plugin DenyServiceExternalIPs.
      if (!(error instanceof ApiError) || !/externalIPs/i.test(error.message)) throw error
      hasExternalIPs = false
      notes.push('This cluster does not allow externalIPs: they were not tried.')
      return cluster.createService(client, name, settings())
    })
    families = familiesOf(nodes, services[name])
    const endpoints = endpointsOf(name, nodes, 'start')
    await cluster.writeEndpoints(client, name, endpoints, { families, isNew: true })
  }
  if (nodes.length === 1) notes.push('With one node, clients of other nodes and denied source ranges were not tried.')
  const apiServer = await cluster.readApiServer(client)
  const all = services as Record<ServiceName, AssignedService>
  return { facts: { nodes, families, services: all, apiServer, hasExternalIPs, outside, skip }, notes }
}

/** Those in which pods and Services have addresses. */
function familiesOf(nodes: readonly TestNode[], { clusterIPs }: AssignedService): Family[] {
  const has = (addresses: readonly string[], family: Family) => addresses.some((ip) => ipFamily(ip) === family)
  return ([4, 6] as const).filter(
    (family) => has(clusterIPs, family) && nodes.every(({ podIps }) => has(podIps, family)),
  )
}

const OUTSIDE = 'outside'

function diallerOf({ kind, node }: Client): string {
  return kind === 'outside' ? OUTSIDE : `${kind} ${node}`
}

async function openDiallers(
  { client, signal, outside, onProgress }: TestOptions,
  nodes: readonly TestNode[],
  names: (node: string) => readonly [string, string],
): Promise<Map<string, Dialler>> {
  onProgress('probes: connecting')
  const opening = nodes.flatMap(({ name }) => {
    const [pod, host] = names(name)
    return [
      [diallerOf({ kind: 'pod', node: name }), pod],
      [diallerOf({ kind: 'node', node: name }), host],
    ] as const
  })
  const diallers = new Map<string, Dialler>()
  await Promise.all(opening.map(async ([key, pod]) => diallers.set(key, await openDialler(client, pod, signal))))
  if (outside) diallers.set(OUTSIDE, ownDialler())
  return diallers
}

async function runPhases(
  options: TestOptions,
  facts: Facts,
  diallers: ReadonlyMap<string, Dialler>,
): Promise<CheckResult[]> {
  const behind = await waitForMarker(options, facts, diallers)
  const results: CheckResult[] = []
  for (const [i, phase] of phases.entries()) {
    if (phase !== 'start') {
      const endpoints = endpointsOf('change', facts.nodes, phase)
      await cluster.writeEndpoints(options.client, 'change', endpoints, { families: facts.families, isNew: false })
    }
    const onCount = (done: number, of: number) =>
      options.onProgress(`step ${i + 1} of ${phases.length}, ${labels[phase]}: ${done} of ${of} checks passed`)
    results.push(...(await runChecks({ ...options, behind, diallers, onCount }, planChecks(facts, phase))))
  }
  return results
}

const labels: Readonly<Record<Phase, string>> = {
  start: 'every kind of address',
  replaced: 'the endpoint is replaced',
  terminating: 'the endpoint terminates',
  gone: 'the last endpoint goes',
  back: 'an endpoint comes back',
}

/**
 * Until every node serves the Service that was made last: where silence is right, it must not be too early. Answers the nodes
 * that do not.
 */
async function waitForMarker(
  options: TestOptions,
  { nodes, families, services }: Facts,
  diallers: ReadonlyMap<string, Dialler>,
): Promise<ReadonlySet<string>> {
  const deadlineMs = performance.now() + options.settleMs
  const dials = families.flatMap((family) => {
    const address = services.marker.clusterIPs.find((ip) => ipFamily(ip) === family)
    const dial = { port: SERVICE_PORT, protocol: 'TCP', times: 1, wait: 'greeting', timeoutMs: 1000 } as const
    return address === undefined ? [] : [{ address, ...dial }]
  })
  let waiting = nodes.map(({ name }) => name)
  while (waiting.length > 0 && performance.now() < deadlineMs) {
    options.onProgress(`proxies: ${nodes.length - waiting.length} of ${nodes.length} have the Services`)
    const answers = await Promise.all(
      waiting.map(async (name) => {
        const attempts = await diallers.get(diallerOf({ kind: 'pod', node: name }))!.run(dials)
        return attempts.flat().every(({ outcome }) => outcome === 'answered') ? [] : [name]
      }),
    )
    waiting = answers.flat()
    if (waiting.length > 0) await sleep(RETRY_MS, undefined, { signal: options.signal })
  }
  return new Set(waiting)
}

interface Round {
  readonly settleMs: number
  readonly signal: AbortSignal
  readonly diallers: ReadonlyMap<string, Dialler>
  /** Nodes that had their time. */
  readonly behind: ReadonlySet<string>
  readonly onCount: (done: number, of: number) => void
}

/** Clients dial independently, so that a slow one keeps no other waiting. */
async function runChecks(round: Round, checks: readonly Check[]): Promise<CheckResult[]> {
  const ofClient = new Map<string, Check[]>()
  for (const check of checks) {
    const key = diallerOf(check.client)
    ofClient.set(key, [...(ofClient.get(key) ?? []), check])
  }
  let done = 0
  const onPassed = (count: number) => round.onCount((done += count), checks.length)
  const results = await Promise.all(
    [...ofClient].map(([key, own]) => runOwnChecks(round, own, round.diallers.get(key)!, onPassed)),
  )
  return results.flat()
}

/** What fails is tried again, the last time when the proxies had their time. */
async function runOwnChecks(
  { settleMs, behind, signal }: Round,
  checks: readonly Check[],
  dialler: Dialler,
  onPassed: (count: number) => void,
): Promise<CheckResult[]> {
  const deadlineMs = performance.now() + settleMs
  const results = new Map<string, CheckResult>()
  let left = checks
  for (;;) {
    const isLast = performance.now() > deadlineMs
    const attempts: readonly (readonly Attempt[])[] = await dialler.run(left.map(({ dial }) => dial))
    for (const [i, check] of left.entries()) {
      results.set(check.id, { check, verdict: judge(check, attempts[i] ?? []) })
    }
    const failed = left.filter(({ id }) => results.get(id)?.verdict.kind === 'fail')
    onPassed(left.length - failed.length)
    left = failed.filter(({ proxy }) => !behind.has(proxy))
    if (left.length === 0 || isLast) return checks.map(({ id }) => results.get(id)!)
    await sleep(RETRY_MS, undefined, { signal })
  }
}

interface Outcome {
  readonly facts: Facts
  readonly results: readonly CheckResult[]
  readonly proxies: readonly ProxyOfNode[]
  readonly problems: readonly string[]
  readonly notes: readonly string[]
  readonly startMs: number
  readonly program: string
}

function reportOf({ facts, results, proxies, problems, notes, startMs, program }: Outcome): TestReport {
  const untried = new Set(
    results
      .filter(({ verdict }) => verdict.kind === 'not tried')
      .map(({ check, verdict }) => `${check.proxy}, ${check.row}: ${verdict.reason}`),
  )
  return {
    version: 1,
    nodes: facts.nodes.map(({ name }) => name),
    families: facts.families,
    tookMs: Math.round(performance.now() - startMs),
    checks: results.map(reportedCheck),
    findings: findCauses(results).map((finding) => ({ ...finding, next: nextCommand(finding.node, proxies, program) })),
    notTried: [...problems],
    notes: [...notes, ...untried, ...describeMeasures(results)],
  }
}
