// `kube-proxy check` on a node with a cluster: what it finds, and that it changes nothing.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { modeNames } from '../../src/modes/all.ts'
import { node as hostNode, control, peer } from '../support/addresses.ts'
import { eventually } from '../support/eventually.ts'
import { readMachineState } from '../support/machine-state.ts'
import { healthzPort, proxyCommand, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { serveEcho } from '../support/netns/echo-server.ts'
import { openRig } from '../support/rig.ts'
import type { Rig } from '../support/rig.ts'

interface Report {
  readonly canRun: boolean
  readonly mode: { readonly asked: string; readonly chosen: string | null; readonly givenUp: readonly string[] }
  readonly findings: readonly { readonly code: string; readonly level: string; readonly message: string }[]
}

let rig: Rig
beforeEach(async () => {
  rig = await openRig()
})
afterEach(() => rig[Symbol.asyncDispose]())

/** Runs the check as an operator does; the report, and the exit status. */
async function check(...flags: string[]): Promise<{ readonly report: Report; readonly status: string }> {
  const { node } = rig.network
  const own = [`--kubeconfig=${rig.cluster.kubeconfig}`, `--hostname-override=${hostNode.name}`]
  const process = new ProxyProcess(node, ['check', '-o', 'json', ...own, ...flags])
  try {
    const status = await process.exited
    return { report: JSON.parse(process.log()) as Report, status }
  } finally {
    await process[Symbol.asyncDispose]()
  }
}

const codes = ({ findings }: Report) => findings.map(({ code }) => code)
const messageOf = ({ findings }: Report, code: string) => findings.find((each) => each.code === code)?.message

test('on a good node all is well, and nothing changes, whichever mode is asked for', async () => {
  const before = readMachineState(rig.network.node)
  for (const mode of modeNames) {
    const { report, status } = await check(`--proxy-mode=${mode}`)
    expect(status, JSON.stringify(report)).toBe('0')
    expect(report.mode.asked).toBe(mode)
    expect(codes(report)).toEqual(expect.arrayContaining(['rights-ok', 'others-none', 'clock-ok', 'node-ok', 'api-ok']))
    expect(messageOf(report, 'node-ok')).toContain(hostNode.ip[4])
  }
  expect(readMachineState(rig.network.node)).toEqual(before)
})

test('rules of the Go kube-proxy are found, and left', async () => {
  const { node } = rig.network
  const fixture = (...path: string[]) => readFileSync(join(import.meta.dirname, ...path), 'utf8')
  node.run('nft', ['-f', '-'], fixture('fixtures', 'kube-proxy/nftables/tables.nft'))
  // Without the counters of nfacct, which would have to be made first.
  const [chains = ''] = fixture('../golden/cluster-ip/iptables-go.save')
    .replaceAll(/^.*nfacct.*\n/gm, '')
    .split('# IPv6')
  node.run('iptables-nft-restore', [], chains)
  const before = readMachineState(node)
  const { report, status } = await check('--proxy-mode=nftables')
  expect(status).toBe('0')
  const rules = report.findings.filter(({ code }) => code === 'other-rules').map(({ message }) => message)
  expect(rules).toEqual([
    expect.stringMatching(/^Rules of mode iptables are in the kernel: iptables-nft .*: KUBE-SERVICES, and \d+ chains/),
    expect.stringMatching(/^Rules of mode nftables are in the kernel: table ip kube-proxy, as kube-proxy writes it/),
  ])
  expect(readMachineState(node)).toEqual(before)
})

test('a proxy at work is found, with its rules, and does not notice', async () => {
  const { node } = rig.network
  const proxy = await startProxy({ netns: node, mode: 'nftables', kubeconfig: rig.cluster.kubeconfig })
  try {
    const before = readMachineState(node)
    const { report, status } = await check('--proxy-mode=nftables')
    expect(status).toBe('0')
    expect(messageOf(report, 'other-process')).toContain('process')
    expect(messageOf(report, 'other-rules')).toContain('as kube-proxy-ts writes it')
    expect(readMachineState(node)).toEqual(before)
  } finally {
    await proxy[Symbol.asyncDispose]()
  }
})

test('a mark of another program is found where it has the bit of ours, in nftables and in both kinds of iptables', async () => {
  const { node } = rig.network
  node.run(
    'nft',
    ['-f', '-'],
    'table inet vpn {\nchain divert {\nmeta mark set 0x2000\nmeta mark set mark and 0x1fff\n}\n}\n',
  )
  node.run('iptables-nft', ['-t', 'nat', '-N', 'CNI-HOSTPORT-SETMARK'])
  node.run('iptables-nft', ['-t', 'nat', '-A', 'CNI-HOSTPORT-SETMARK', '-j', 'MARK', '--set-xmark', '0x2000/0x2000'])
  node.run('iptables-legacy', ['-t', 'mangle', '-A', 'FORWARD', '-j', 'MARK', '--set-mark', '0x2000'])
  const { report } = await check('--proxy-mode=iptables', '--iptables-masquerade-bit=13')
  const found = report.findings.filter(({ code }) => code === 'mark-taken').map(({ message }) => message)
  expect(found).toEqual([
    expect.stringMatching(/sets bit 13 \(0x2000\) of packet marks: chain divert of the nftables table inet vpn$/),
    expect.stringMatching(/: chain CNI-HOSTPORT-SETMARK of table nat, iptables-nft /),
    expect.stringMatching(/: chain FORWARD of table mangle, iptables-legacy /),
  ])
  expect(codes((await check('--proxy-mode=iptables')).report)).not.toContain('mark-taken')
})

test('a port that another program has is a warning, and a problem where it must be had', async () => {
  const squatter = await serveEcho(rig.network.node, 'squatter', { tcp: [healthzPort], udp: [] })
  try {
    const soft = await check('--proxy-mode=nftables')
    expect(soft.status).toBe('0')
    expect(messageOf(soft.report, 'port-taken')).toContain(`${healthzPort}`)
    const hard = await check('--proxy-mode=nftables', '--bind-address-hard-fail')
    expect(hard.status).toBe('1')
    expect(codes(hard.report)).toContain('port-taken-hard')
  } finally {
    await squatter[Symbol.asyncDispose]()
  }
})

test('a Node that does not exist, and one that is elsewhere', async () => {
  const nobody = await check('--proxy-mode=nftables', '--hostname-override=nobody')
  expect(nobody.status).toBe('0')
  expect(messageOf(nobody.report, 'node-missing')).toContain('nobody')
  const { report } = await checkElsewhere()
  expect(codes(report)).toContain('node-elsewhere')
})

/** The same node name, but on another machine. */
async function checkElsewhere(): Promise<{ readonly report: Report }> {
  const flags = [`--kubeconfig=${rig.cluster.kubeconfig}`, `--hostname-override=${hostNode.name}`]
  const process = new ProxyProcess(rig.network.peer, ['check', '-o', 'json', ...flags, '--proxy-mode=nftables'])
  try {
    await process.exited
    return { report: JSON.parse(process.log()) as Report }
  } finally {
    await process[Symbol.asyncDispose]()
  }
}

test('a proxy that runs says on /statusz what the check says, and once in an Event; also of a changed file', async () => {
  const { node } = rig.network
  // Their Node is another machine.
  const flags = [`--hostname-override=${peer.name}`, '--proxy-mode=nftables']
  const { report } = await check(...flags)
  const wrong = messageOf(report, 'node-elsewhere')
  expect(wrong).toContain(peer.name)
  const file = join(rig.cluster.folder, 'config')
  const configure = (more: string) =>
    writeFileSync(
      file,
      `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: ${peer.name}
oomScoreAdj: 0
conntrack: { maxPerCore: 0 }
clientConnection: { kubeconfig: ${rig.cluster.kubeconfig} }
${more}`,
    )
  configure('')
  await using proxy = new ProxyProcess(node, [`--config=${file}`])
  await proxy.ready()
  const says = (text: string) =>
    eventually('/statusz says it', async () => {
      const { body = '' } = (await proxy.ask('/statusz')) ?? {}
      return body.includes(text) ? undefined : body
    })
  const told = () =>
    rig.cluster.server.requests
      .filter(({ path, body }) => path.includes('/events') && body.includes('KubeProxyCheck'))
      .map(({ body }) => (JSON.parse(body) as { note: string }).note)
  await says(`kube-proxy check:\n  warning  ${wrong}\n           -> `)
  await eventually('there is an Event', () => (told().length > 0 ? undefined : 'none'))
  configure('oddField: 1\nnftables: { syncPeriod: 31s }\n')
  await says('oddField')
  const notes = told()
  expect(notes.filter((note) => note.includes(wrong!))).toHaveLength(1)
  expect(notes.length).toBeLessThan(5)
  // What is wrong with ports has Events of its own, and those that are in use are its own.
  expect((await proxy.ask('/statusz'))?.body).not.toContain('Another program listens')
})

test('--from compares modes for the Services of the cluster, and changes nothing; without an API server the status is 2', async () => {
  const before = readMachineState(rig.network.node)
  const { report, status } = await check('--from=iptables')
  expect(status, JSON.stringify(report)).toBe('1')
  expect(report).toMatchObject({ from: 'iptables', to: 'nftables', isSame: false, nodeName: hostNode.name })
  expect(report).toMatchObject({
    changes: expect.arrayContaining([expect.objectContaining({ code: 'invalid-packets' })]),
  })
  const same = await check('--from=iptables', '--conntrack-tcp-be-liberal')
  expect(same.status, JSON.stringify(same.report)).toBe('0')
  // Of the new mode, though the default mode has no hash.
  const hashed = await check('--from=ipvs', '--ipvs-scheduler=sh', '--balance=hash-client')
  expect(hashed.report).toMatchObject({ from: 'ipvs', to: 'nftables' })
  expect(readMachineState(rig.network.node)).toEqual(before)
  const away = join(rig.cluster.folder, 'gone')
  writeFileSync(away, readFileSync(rig.cluster.kubeconfig, 'utf8').replace(/(server: .*):\d+/, '$1:1'))
  await using unanswered = new ProxyProcess(rig.network.node, ['check', '--from=ipvs', `--kubeconfig=${away}`])
  expect(await unanswered.exited).toBe('2')
})

test('an API server that is away, and one that refuses', async () => {
  const away = join(rig.cluster.folder, 'away')
  const kubeconfig = readFileSync(rig.cluster.kubeconfig, 'utf8')
  writeFileSync(away, kubeconfig.replace(/(server: .*):\d+/, '$1:1'))
  const { report, status } = await check('--proxy-mode=nftables', `--kubeconfig=${away}`)
  expect(status).toBe('1')
  expect(messageOf(report, 'api-unreachable')).toContain(control.ip[4])
  await rig[Symbol.asyncDispose]()
  rig = await openRig({ authorize: () => false })
  const refused = await check('--proxy-mode=nftables')
  expect(refused.status).toBe('1')
  expect(codes(refused.report)).toContain('api-unauthorized')
})

test('a process without rights is reported so, and so is one whose file is wrong', async () => {
  const { node } = rig.network
  const command = ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin', ...proxyCommand()]
  const flags = ['check', '--proxy-mode=nftables', `--kubeconfig=${rig.cluster.kubeconfig}`]
  const process = new ProxyProcess(node, flags, { command })
  expect(await process.exited).toBe('1')
  expect(process.log()).toContain('PROBLEM  This process does not have CAP_NET_ADMIN')
  expect(process.log()).toContain('kube-proxy cannot run here')
  await process[Symbol.asyncDispose]()
  const file = join(rig.cluster.folder, 'config')
  writeFileSync(file, 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ebpf\n')
  const { report, status } = await check(`--config=${file}`)
  expect(status).toBe('1')
  expect(messageOf(report, 'config-invalid')).toContain('mode')
})
