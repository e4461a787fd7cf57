// kubectl-kubeproxy as it is shipped, one file, against the API server of a sandbox. The pods of the proxies stand for those of a
// DaemonSet: they are in the network of their nodes, where the sandbox's own proxies run.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { TestReport } from '../../src/probe/report.ts'
import { checkout } from '../support/checkout.ts'
import { eventually } from '../support/eventually.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { SandboxProcess } from './support/sandbox-process.ts'

enterMachine()
const root = makeRoot()
const folder = mkdtempSync(join(tmpdir(), 'kubectl-plugin-'))
const plugin = join(folder, 'kubectl-kubeproxy')
/** Before those of the checkout: what runs in a pod is looked for here first. */
const path = mkdtempSync(join(tmpdir(), 'kubectl-plugin-path-'))
const pods = '/api/v1/namespaces/kube-system/pods'
/** Written into the environment of the proxies: it must not get into a sysdump. */
const SECRET = 'hunter2-of-the-test'
let sandbox: SandboxProcess
let client: string

beforeAll(async () => {
  const built = spawnSync(join(checkout, 'scripts/kubectl-plugin'), ['--out', folder], { encoding: 'utf8' })
  expect(built.status, built.stderr).toBe(0)
  // What runs in a pod is found as in the image: by its name.
  process.env['PATH'] = `${path}:${join(checkout, 'bin')}:${process.env['PATH']}`
  sandbox = await SandboxProcess.start(root)
  for (const node of ['node-1', 'node-2']) await sandbox.api.create(pods, aProxyPod('kube-proxy-ts', node))
  await eventually('the pods of the proxies run', () => {
    const { status, stdout, stderr } = run('status')
    return status === 0 ? undefined : `${stdout}${stderr}`
  })
  const { pods: running } = await sandbox.status()
  client = running.find(({ node, namespace }) => node === 'node-2' && namespace === 'default')!.name
})
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]()
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
  for (const each of [folder, path]) rmSync(each, { recursive: true })
})

function aProxyPod(label: 'kube-proxy-ts' | 'kube-proxy', node: string): object {
  const socket = { name: 'KUBE_PROXY_CONTROL_SOCKET', value: sandbox.path(`${node}.sock`) }
  const image = label === 'kube-proxy' ? 'registry.k8s.io/kube-proxy:v1.37.0' : 'kube-proxy-ts:1'
  const env = [{ name: 'API_TOKEN', value: SECRET }, ...(label === 'kube-proxy' ? [] : [socket])]
  return {
    metadata: { name: `${label}-${node}`, labels: { 'k8s-app': label } },
    spec: { nodeName: node, hostNetwork: true, containers: [{ name: 'kube-proxy', image, env }] },
  }
}

const environment = () => ({ ...process.env, KUBECONFIG: sandbox.path('kubeconfig') })

function run(...args: readonly string[]) {
  return spawnSync(plugin, args, { encoding: 'utf8', env: environment(), cwd: folder, timeout: 120_000 })
}

test('status has a line for each node', () => {
  const { status, stdout } = run('status')
  expect(status).toBe(0)
  expect(stdout).toMatch(/^NODE +MODE +VERSION +IN SYNC +DRIFT +REFUSED +EJECTED +SLOWEST CHANGE\n/)
  for (const node of ['node-1', 'node-2'])
    expect(stdout).toMatch(new RegExp(`^${node} +nftables +v1\\.\\S+ +for \\d+s +0 +0 +0 +(under|-)`, 'm'))
  const { nodes } = JSON.parse(run('status', '-o', 'json').stdout) as { nodes: { node: string; status: object }[] }
  expect(nodes).toMatchObject([{ node: 'node-1', status: { mode: 'nftables' } }, { node: 'node-2' }])
})

test('explain asks the proxy of the node where the pod is, and its exit status is passed on', () => {
  const { status, stdout } = run('explain', client, 'whoami:3000', '-o', 'json')
  expect(status).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ agreement: 'agrees', outcome: 'to' })
  expect(run('explain', client, 'whoami:3000').stdout).toMatch(/at node\s+node-2/)
  expect(run('explain', '--node', 'node-1', '10.9.9.9:1').status).toBe(2)
  const missing = run('explain', 'no-such-pod', 'whoami')
  expect([missing.status, missing.stderr]).toEqual([1, expect.stringContaining('there is no pod default/no-such-pod')])
  expect(run('explain', 'whoami', '--node=nowhere').stderr).toContain(
    'no pod of a kube-proxy runs on node nowhere; nodes with one: node-1, node-2',
  )
})

test('doctor asks every node', () => {
  const { status, stdout } = run('doctor', 'whoami')
  expect(stdout).toMatch(/^--- node-1\n/)
  expect(stdout).toMatch(/^--- node-2\n/m)
  expect(stdout.match(/default\/whoami: /g), stdout).toHaveLength(2)
  expect([0, 3]).toContain(status)
  const lost = run('doctor', 'no-such-service')
  expect([lost.status, lost.stdout]).toEqual([2, expect.stringContaining('no-such-service')])
})

test('flows shows the connections of every node', async () => {
  const child = spawn(plugin, ['flows', 'whoami', '--count=2'], { env: environment() })
  let [out, error] = ['', '']
  child.stdout.on('data', (text) => (out += String(text)))
  child.stderr.on('data', (text) => (error += String(text)))
  await eventually('both nodes look', () =>
    (error.match(/connections on node-/g) ?? []).length === 2 ? undefined : error,
  )
  sandbox.run('exec', client, '--', 'curl', '-s', 'http://whoami:3000')
  await eventually('the connection is shown', () => (/ended|closed|reset/.test(out) ? undefined : `${out}${error}`))
  expect(out).toMatch(new RegExp(`default/${client} \\S+ on node-2 -> default/whoami .*: begun`))
  child.kill('SIGTERM')
})

test('test tries the Services with the kubeconfig of the plugin, and has help of its own', async () => {
  const others = ['API server', 'hairpin', 'external IP', 'load balancer IP', 'session affinity', 'source ranges']
  const { status, stdout, stderr } = run(
    'test',
    '--context=sandbox',
    '--nodes=node-1',
    '--json=test.json',
    `--skip=${others.join()}`,
  )
  expect(status, `${stdout}${stderr}`).toBe(0)
  expect(stdout).toMatch(/^cluster IP +ok \d+$/m)
  expect(stdout).not.toContain('hairpin')
  const { nodes, findings } = JSON.parse(readFileSync(join(folder, 'test.json'), 'utf8')) as TestReport
  expect({ nodes, findings }).toEqual({ nodes: ['node-1'], findings: [] })
  const { items } = (await sandbox.api.get('/api/v1/namespaces')) as unknown as {
    items: { metadata: { name: string } }[]
  }
  expect(items.map(({ metadata }) => metadata.name)).not.toContain('kube-proxy-test')

  expect(run('test', '--context=nowhere').stderr).toContain('nowhere')
  expect(run('test', '--node=node-1').stderr).toContain('test takes --nodes A,B, not --node')
  expect(run('test', '--sjip=hairpin').stderr).toContain('unknown option --sjip')
  for (const words of [
    ['test', '--help'],
    ['help', 'test'],
  ])
    expect(run(...words).stdout).toMatch(
      /Usage:\n  kubectl kubeproxy test \[options\]\n[^]*--compare FILE[^]*--context NAME/,
    )
})

test('a packet that is lost on another machine is followed there', async () => {
  // The nodes of a sandbox share a kernel: without these rights, one sees no more of the other than in a cluster.
  const without = '--bounding-set=-bpf,-perfmon,-sys_admin'
  const sees = `case "$1" in doctor|explain) exec setpriv ${without} ${join(checkout, 'bin/kube-proxy')} "$@";; esac`
  const script = `#!/bin/sh\n${sees}\nexec ${join(checkout, 'bin/kube-proxy')} "$@"\n`
  writeFileSync(join(path, 'kube-proxy'), script, { mode: 0o755 })
  const wall = (...rest: string[]) => sandbox.run('exec', 'node-2', '--', 'nft', ...rest)
  wall('add table inet wall; add chain inet wall c { type filter hook forward priority 0; }')
  wall('add rule inet wall c tcp dport 3000 drop')
  try {
    const doctor = run('doctor', 'whoami', '--send', '--node=node-1')
    expect(doctor.stdout, doctor.stderr).toMatch(/does not answer: where a packet to \S+ ends is not known/)
    expect(doctor.stdout).toMatch(
      /\nOn node-2: table inet wall, chain c drops a packet to 10\.244\.2\.\d+:3000: .*dport 3000 drop\n$/,
    )
    expect(doctor.status).toBe(2)
  } finally {
    wall('delete table inet wall')
    rmSync(join(path, 'kube-proxy'))
  }
})

test('a node with another kube-proxy: explain and doctor read its kernel in a pod, which is gone afterwards', async () => {
  await sandbox.api.delete(`${pods}/kube-proxy-ts-node-1?gracePeriodSeconds=0`)
  await sandbox.api.create(pods, aProxyPod('kube-proxy', 'node-1'))
  const configuration = JSON.stringify({ mode: 'nftables', clusterCIDR: '10.243.0.0/16' })
  const configMap = {
    metadata: { name: 'kube-proxy' },
    data: { 'config.conf': configuration, 'kubeconfig.conf': `token: ${SECRET}` },
  }
  await sandbox.api.create('/api/v1/namespaces/kube-system/configmaps', configMap)
  await eventually('status tells', () => {
    const { stdout } = run('status')
    return /^node-1 +- +- +another kube-proxy: registry/m.test(stdout) ? undefined : stdout
  })
  const refused = run('explain', 'whoami', '--node=node-1')
  expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('--image=')])
  const { status, stdout, stderr } = run('explain', 'whoami', '--node=node-1', '--image=kube-proxy-ts:1', '-o', 'json')
  expect(status, stdout + stderr).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({ agreement: 'agrees', outcome: 'to' })
  // That proxy is not asked: the rest is known.
  const one = run('doctor', 'whoami', '--node=node-1', '--image=kube-proxy-ts:1', '-o', 'json')
  expect(one.status, one.stdout + one.stderr).toBe(3)
  const { answers } = JSON.parse(one.stdout) as { answers: { question: string; result: string; detail: string }[] }
  expect(answers.filter(({ result }) => result !== 'yes')).toEqual([
    expect.objectContaining({
      detail: expect.stringContaining('another kube-proxy serves node node-1 in mode nftables'),
    }),
  ])
  const all = run('doctor', 'no-such-service', '--image=kube-proxy-ts:1')
  expect([all.status, all.stdout.match(/there is no Service default\/no-such-service/g)]).toEqual([
    2,
    expect.objectContaining({ length: 2 }),
  ])
  expect(run('doctor', 'no-such-service').stdout).not.toContain('node-1')
  const { items } = (await sandbox.api.get(pods)) as unknown as { items: { metadata: { name: string } }[] }
  expect(items.map(({ metadata }) => metadata.name).filter((name) => name.includes('debug'))).toEqual([])
})

test('sysdump is one archive, without secrets', () => {
  const { status, stdout, stderr } = run('sysdump', '--file=dump.tar.gz')
  expect(status, stderr).toBe(0)
  expect(stdout).toBe('dump.tar.gz\n')
  const archive = join(folder, 'dump.tar.gz')
  const tar = (...args: string[]) => spawnSync('tar', args, { encoding: 'utf8', maxBuffer: 1 << 28 }).stdout
  const names = tar('tzf', archive).trim().split('\n')
  expect(names).toEqual(
    expect.arrayContaining([
      'cluster/status.txt',
      'cluster/services.json',
      'nodes/node-2/status.json',
      'nodes/node-2/plan.txt',
    ]),
  )
  const dumped = JSON.parse(tar('xOzf', archive, 'nodes/node-2/status.json')) as Record<string, object>
  expect(dumped['state']).toMatchObject({ nodeName: 'node-2', mode: { name: 'nftables' } })
  expect(dumped['metrics']).toContain('kubeproxy_sync_proxy_rules_last_timestamp_seconds')
  const all = tar('xOzf', archive)
  expect(tar('xOzf', archive, 'cluster/configmap-kube-proxy.txt')).toContain('10.243.0.0/16')
  expect(all).not.toContain(SECRET)
  const { users } = parse(readFileSync(sandbox.path('kubeconfig'), 'utf8')) as {
    users: { user: Record<string, string> }[]
  }
  for (const value of Object.values(users[0]!.user)) expect(all).not.toContain(value)
  expect(all).not.toMatch(/PRIVATE KEY|eyJ\w+\.\w+/)
  const again = run('sysdump', '--file=dump.tar.gz')
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining('EEXIST')])
})

test('what krew installs', () => {
  const manifest = parse(readFileSync(join(folder, 'kubeproxy.yaml'), 'utf8')) as {
    spec: { platforms: { uri: string; files: { from: string }[]; bin: string }[] }
  }
  const [platform] = manifest.spec.platforms
  const archive = platform!.uri.replace('file://', '')
  expect(existsSync(archive)).toBe(true)
  const listed = spawnSync('tar', ['tzf', archive], { encoding: 'utf8' }).stdout.trim().split('\n')
  expect(listed.sort()).toEqual(platform!.files.map(({ from }) => from).sort())
  expect(readFileSync(join(folder, 'kubeproxy.yaml'), 'utf8')).not.toContain('{{')
})
