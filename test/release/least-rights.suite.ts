// The image as a node runs it: under containerd and runc, with what the manifests name and nothing else. It serves with that, and
// does not with less; and it asks the API server for all that its role allows, and for no more.

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { parseApiRequest } from '../../packages/sandbox/src/apiserver/http/api-request.ts'
import type { Rule } from '../../packages/sandbox/src/apiserver/http/users.ts'
import type { Verb } from '../../packages/sandbox/src/apiserver/resources/resource.ts'
import type { ModeName } from '../conformance/modes.ts'
import { node, ranges } from '../support/addresses.ts'
import type { ApiServerOptions } from '../support/api-server/api-server.ts'
import { aService, aSlice } from '../support/builders.ts'
import { Cgroup, cgroupRoot, whyNoCgroup } from '../support/cgroup.ts'
import { checkout } from '../support/checkout.ts'
import { eventually } from '../support/eventually.ts'
import { httpGet, tcpProbe } from '../support/netns/probe.ts'
import { dialFrom, mirror, readAll, serveStreams } from '../support/netns/streams.ts'
import { ProxyProcess, whyNotRun } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { Containerd, type ContainerOptions } from './containerd.ts'
import { MountedConfigMap, Pod, writeAccount, type Probe } from './pod.ts'

interface PolicyRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly Verb[]
}

/** Of the role in the manifests. */
function roleRules(): Rule[] {
  const documents = parseAllDocuments(readFileSync(join(checkout, 'deploy/base/rbac.yaml'), 'utf8'))
  const { rules } = documents[0]!.toJS() as { rules: PolicyRule[] }
  return rules.map(({ apiGroups, resources, verbs }) => ({
    verbs,
    resources: apiGroups.flatMap((group) => resources.map((name) => (group === '' ? name : `${name}.${group}`))),
  }))
}

const token = 'the-token-of-the-service-account'

/** A network, a cluster whose API server knows one user, with the rights of the role, and a node for the pod. */
async function openNode(
  folder: string,
  mode: ModeName,
  { components = [], ...api }: ApiServerOptions & { components?: readonly string[] } = {},
): Promise<{ rig: Rig; pod: Pod; home: string }> {
  const users = [{ name: 'system:serviceaccount:kube-system:kube-proxy-ts', token, rules: roleRules() }]
  const rig = await openRig({ users, ...api })
  const home = mkdtempSync(join(folder, `${mode}-`))
  const { clusters } = parse(readFileSync(rig.cluster.kubeconfig, 'utf8')) as {
    clusters: [{ cluster: { 'certificate-authority-data': string } }]
  }
  const authority = Buffer.from(clusters[0].cluster['certificate-authority-data'], 'base64').toString()
  writeAccount(home, token, authority)
  const { hostname, port } = new URL(rig.cluster.server.url)
  const podRange = [ranges.pods[4], ranges.pods[6]].join()
  const settings = { apiServerHost: hostname, apiServerPort: port, podRange }
  const network = rig.network.node.path
  // Limits that belong to the machine and not to the namespace stay; and kubelet would have set the score.
  const more = ['--conntrack-max-per-core=0', '--strict-proxy-mode', '--oom-score-adj=0']
  return { rig, pod: new Pod({ mode, components, nodeName: node.name, settings, network, folder: home }, more), home }
}

function probe(rig: Rig, { httpGet: { host, port, path } }: Probe) {
  return httpGet(rig.network.node, { address: host, port }, { path })
}

/** How much it has written to the kernel since it started, once it has compared everything. */
async function operations(proxy: ProxyProcess): Promise<number> {
  let page = ''
  await eventually('the first sync of both families is done', async () => {
    page = (await proxy.ask('/metrics'))?.body ?? ''
    const synced = page.match(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{/gm) ?? []
    return synced.length === 2 ? undefined : proxy.logTail(5)
  })
  const counts = [...page.matchAll(/^kubeproxyts_operations_total\{.*\} (\d+)$/gm)]
  return counts.reduce((sum, match) => sum + Number(match[1]), 0)
}

const mirrorPort = 9100

/** `archive` is that of the image, once there is one; or there is a reason why there is none. */
export function describeLeastRights(archive: () => string, whyNone: string | undefined): void {
  const folder = mkdtempSync(join(tmpdir(), 'least-rights-'))
  let containerd: Containerd

  beforeAll(async () => {
    if (whyNone === undefined) containerd = await Containerd.start(archive())
  })
  afterEach(() => containerd?.clear())
  afterAll(async () => {
    await containerd?.[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true })
  })

  function run(rig: Rig, options: ContainerOptions): ProxyProcess {
    return new ProxyProcess(rig.network.node, [], { command: containerd.command(options) })
  }

  describe.each<ModeName>(['nftables', 'iptables', 'userspace', 'ipvs'])('the pod in %s mode', (mode) => {
    const inKernel = mode !== 'userspace'
    const reason = whyNone ?? whyNotRun(mode)
    const web = aService({
      type: 'NodePort',
      families: [4],
      ports: [{ name: 'echo' }, { name: 'mirror', port: 81, targetPort: mirrorPort }],
    })
    const echo = { address: web.spec.clusterIP, port: 80 }
    let rig: Rig
    let pod: Pod
    let home: string
    beforeAll(async () => {
      if (reason === undefined) ({ rig, pod, home } = await openNode(folder, mode))
    })
    afterAll(async () => rig?.[Symbol.asyncDispose]())
    beforeEach(({ skip }) => {
      if (reason !== undefined) skip(reason)
    })

    const answers = async (log: () => string) =>
      expect(await tcpProbe(rig.network.sources.localPod, echo), log()).toMatchObject({ greeting: { host: 'localB' } })

    test('serves, ends, starts again and follows its ConfigMap with the rights of the manifest', async () => {
      await using server = await serveStreams(rig.network.pods.localB, mirrorPort, mirror)
      rig.cluster.put(web, aSlice(web, ['localB'], { family: 4 }))
      await using init = run(rig, pod.init())
      expect(await init.exited, init.log()).toBe('0')

      await using first = run(rig, pod.main())
      await first.ready()
      await rig.settled()
      await answers(() => first.logTail(20))
      const made = await operations(first)
      expect(made).toBeGreaterThan(20)
      for (const each of Object.values(pod.probes)) expect((await probe(rig, each))?.status).toBe(200)

      // It drains: what is open goes on, by the kernel's hand or by its own, and it ends well.
      const open = dialFrom(rig.network.sources.localPod, { ...echo, port: 81 })
      const heard = readAll(open)
      open.write('before')
      await eventually('the connection is there', () => (server.seen > 0 ? undefined : 'not yet'))
      first.signal('SIGTERM')
      if (inKernel) expect(await first.exited, first.logTail(20)).toBe('0')
      open.end(' and after')
      expect(await heard).toMatchObject({ length: 'before and after'.length, code: '' })
      expect(await first.exited, first.logTail(20)).toBe('0')
      // All that takes more rights was done before.
      expect(first.log()).not.toMatch(
        /Cannot change a kernel setting|Cannot be asked|EPERM|EACCES|EROFS|not permitted/i,
      )
      if (inKernel) await answers(() => 'while no proxy runs')

      const configuration = new MountedConfigMap(join(home, 'configuration'))
      configuration.write('config.conf', configurationOf(mode))
      await using second = run(rig, pod.withConfiguration(configuration.folder))
      await second.ready()
      // It takes over what it finds.
      if (inKernel) expect(await operations(second)).toBeLessThan(made / 5)
      configuration.write('config.conf', `${configurationOf(mode)}nodePortAddresses: ["${node.secondIp[4]}/32"]\n`)
      await eventually('the changed ConfigMap is in force', async () =>
        (await second.ask('/configz'))?.body.includes(node.secondIp[4]) === true ? undefined : second.logTail(5),
      )
      const onSecondIp = { address: node.secondIp[4], port: web.spec.ports[0]!.nodePort! }
      await eventually('the node port is where the ConfigMap says', async () => {
        const answer = await tcpProbe(rig.network.sources.external, onSecondIp)
        return answer.kind === 'answered' ? undefined : answer.kind
      })
      expect(await second.stop('SIGTERM'), second.logTail(20)).toBe('0')
    })

    test('has no right that it could do without', async () => {
      // On a node that uses iptables-legacy, which is what NET_RAW is for.
      if (mode === 'iptables') await useLegacy()
      const { rights } = pod
      const outcomes = [await outcomeWith(rights)]
      for (const right of rights) outcomes.push(await outcomeWith(rights.filter((each) => each !== right)))
      expect(outcomes[0]).toMatch(mode === 'iptables' ? /^it serves by iptables-legacy/ : /^it serves$/)
      for (const [i, outcome] of outcomes.slice(1).entries())
        expect(outcome, `without ${rights[i]}`).not.toBe(outcomes[0])
    })

    async function useLegacy(): Promise<void> {
      const { command, ...init } = pod.init()
      await using cleanup = run(rig, { ...init, command: [...command.slice(0, 1), '--cleanup'] })
      expect(await cleanup.exited, cleanup.log()).toBe('0')
      rig.network.node.run('iptables-legacy', ['-t', 'mangle', '-N', 'KUBE-IPTABLES-HINT'])
    }

    /** What becomes of a start with these capabilities. */
    async function outcomeWith(capabilities: readonly string[]): Promise<string> {
      await using proxy = run(rig, { ...pod.main(), capabilities })
      const ready = proxy.ready().then(() => 'ready')
      const ended = proxy.exited.then((code) => `it ends with ${code}`)
      const outcome = await Promise.race([ready.catch(() => ended), ended])
      if (outcome !== 'ready') {
        expect(proxy.log()).toMatch(/Error running kube-proxy.*(not permitted|EPERM|[Pp]ermission|denied)/)
        return outcome
      }
      expect(await proxy.stop('SIGTERM'), proxy.logTail(20)).toBe('0')
      const programs = /"Using iptables" programs="(\S+)/.exec(proxy.log())?.[1]
      return programs === undefined ? 'it serves' : `it serves by ${programs}`
    }
  })

  test('chooses at connect() with the component that says so, and not with fewer rights', async ({ skip }) => {
    const reason = whyNone ?? whyNoCgroup()
    if (reason !== undefined) skip(reason)
    if (existsSync(join(cgroupRoot()!, 'kubepods'))) skip('this machine is a node: it has a cgroup of pods')
    using pods = new Cgroup('kubepods')
    const { rig, pod } = await openNode(folder, 'nftables', { components: ['choose-at-connect'] })
    await using _ = rig
    const web = aService({ families: [4] })
    rig.cluster.put(web, aSlice(web, ['localA'], { family: 4 }))
    const { localPod } = rig.network.sources
    localPod.clients = pods
    /** By the rules, a pod that reaches itself sees an address of the node. */
    const meetsItself = async () => {
      const answer = await tcpProbe(localPod, { address: web.spec.clusterIP, port: 80 })
      return answer.kind === 'answered' && answer.greeting.seenAs === answer.client
    }
    for (const lacking of [undefined, ...pod.rights.filter((right) => right !== 'NET_ADMIN')]) {
      const capabilities = pod.rights.filter((right) => right !== lacking)
      await using proxy = run(rig, { ...pod.main(), capabilities })
      await proxy.ready()
      await rig.settled()
      const status = (await proxy.ask('/statusz'))?.body ?? ''
      if (lacking === undefined)
        expect(status).toMatch(/^Socket balancing: for pods, cgroup \/host\/cgroup\S*\/kubepods,/m)
      else expect(status).toMatch(/^Socket balancing: not for pods: .*EPERM/m)
      if (lacking !== undefined) expect(await meetsItself(), proxy.logTail(20)).toBe(false)
      else await eventually('it meets itself', async () => ((await meetsItself()) ? undefined : proxy.logTail(20)))
      expect(await proxy.stop('SIGTERM'), proxy.logTail(20)).toBe('0')
    }
  })

  describe('the role', () => {
    const clusters = { new: {}, old: { without: ['endpointslices', 'servicecidrs', 'events'] } }
    const isOld = (right: string) => / (endpoints|events)$/.test(right)

    test('allows what is asked for, all of it is asked for, and no more', async () => {
      const listed = roleRules().flatMap(({ verbs, resources }) =>
        resources.flatMap((name) => verbs.map((verb) => `${verb} ${name}`)),
      )
      const asked = new Set<string>()
      for (const [name, api] of Object.entries(clusters)) {
        const { rig, pod } = await openNode(folder, 'nftables', api)
        await using _ = rig
        await using proxy = run(rig, pod.main())
        const wanted = listed.filter((right) => isOld(right) === (name === 'old'))
        await eventually(`all that is for a ${name} cluster is asked for`, () => {
          for (const { method, path, query } of rig.cluster.server.requests) asked.add(rightFor(method, path, query))
          const missing = wanted.filter((right) => !asked.has(right))
          return missing.length === 0 ? undefined : `${missing.join(', ')}\n${proxy.logTail(5)}`
        })
        await proxy.stop('SIGTERM')
      }
      expect([...asked].sort()).toEqual(listed.sort())
    })
  })

  test('serves under the default profile of AppArmor', async ({ skip }) => {
    if (!existsSync('/sys/kernel/security/apparmor/profiles')) skip('this kernel has no AppArmor')
    execFileSync('apparmor_parser', ['--version'])
    const { rig, pod } = await openNode(folder, 'nftables')
    await using _ = rig
    await using proxy = run(rig, { ...pod.main(), isAppArmorOn: true })
    await proxy.ready()
    expect(await proxy.stop('SIGTERM'), proxy.logTail(20)).toBe('0')
  })
}

/** As kubeadm writes it. */
function configurationOf(mode: ModeName): string {
  return [
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1',
    'kind: KubeProxyConfiguration',
    `mode: ${mode}`,
    `clusterCIDR: ${ranges.pods[4]},${ranges.pods[6]}`,
    'conntrack: {maxPerCore: 0}',
    'oomScoreAdj: 0',
    '',
  ].join('\n')
}

function rightFor(method: string, path: string, query: Readonly<Record<string, string>>): string {
  const url = new URL(path, 'https://server')
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const { verb, resource } = parseApiRequest(method, url)
  return `${verb} ${resource.plural}${resource.group === '' ? '' : `.${resource.group}`}`
}
