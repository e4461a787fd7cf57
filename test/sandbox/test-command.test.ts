// `kube-proxy test` against sandboxes whose proxies work, and whose proxies are broken on purpose.

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { TestReport } from '../../src/probe/report.ts'
import { eventually } from '../support/eventually.ts'
import { patience } from '../support/patience.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { program, SandboxProcess } from './support/sandbox-process.ts'

enterMachine()
const root = makeRoot()
afterAll(() => {
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
})

const NAMESPACES = '/api/v1/namespaces'
const NAMESPACE = `${NAMESPACES}/kube-proxy-test`

interface Finished {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Running {
  readonly finished: Promise<Finished>
  /** What it has said so far. */
  readonly said: () => string
  interrupt(): void
}

function start(sandbox: SandboxProcess, ...args: readonly string[]): Running {
  const env = { ...process.env, KUBECONFIG: sandbox.path('kubeconfig') }
  const child = spawn(program, ['test', '--settle', `${Math.ceil(3000 * patience())}ms`, ...args], { env })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  return {
    finished: new Promise((resolve) => child.on('close', (status) => resolve({ status, stdout, stderr }))),
    said: () => stderr,
    interrupt: () => child.kill('SIGINT'),
  }
}

/** What is broken stays so: waiting would not change it. */
const soon = ['--settle', '1s']
const run = (sandbox: SandboxProcess, ...args: readonly string[]): Promise<Finished> => start(sandbox, ...args).finished
/** What it says is shown where it does not pass. */
async function passes(sandbox: SandboxProcess, ...args: readonly string[]): Promise<void> {
  const { status, stdout, stderr } = await run(sandbox, ...args)
  expect(status, `${stdout}${stderr}`).toBe(0)
}

const result = (file: string): TestReport => JSON.parse(readFileSync(join(root, file), 'utf8')) as TestReport

async function namespaces(sandbox: SandboxProcess): Promise<string[]> {
  const { items } = (await sandbox.api.get(NAMESPACES)) as { items: { metadata: { name: string } }[] }
  return items.map(({ metadata }) => metadata.name)
}

function inSandbox(mode: string): Promise<SandboxProcess> {
  return SandboxProcess.start(root, 'up', '--empty', '--dual-stack', '--proxy-mode', mode)
}

describe('nftables', () => {
  test('passes, is the same again, and finds a firewall that drops on one node', async () => {
    await using sandbox = await inSandbox('nftables')
    await passes(sandbox, '--json', join(root, 'before.json'), '--junit', join(root, 'before.xml'))
    const { checks, findings, nodes, families } = result('before.json')
    expect({ findings, nodes, families }).toEqual({ findings: [], nodes: ['node-1', 'node-2'], families: [4, 6] })
    expect(checks.filter(({ verdict }) => verdict !== 'pass')).toEqual([])
    expect(readFileSync(join(root, 'before.xml'), 'utf8')).toContain(`tests="${checks.length}" failures="0"`)
    expect(await namespaces(sandbox)).not.toContain('kube-proxy-test')

    const rules =
      'add chain inet fw f { type filter hook forward priority 0; }; add rule inet fw f meta l4proto udp ct status dnat drop'
    expect(sandbox.run('exec', 'node-2', '--', 'nft', `add table inet fw; ${rules}`)).toMatchObject({ status: 0 })
    const files = ['--compare', join(root, 'before.json'), '--json', join(root, 'after.json')]
    const after = await run(sandbox, ...soon, ...files)
    expect(after.status).toBe(2)
    expect(result('after.json').findings[0]).toMatchObject({ node: 'node-2' })
    expect(result('after.json').findings[0]?.headline).toMatch(/ by UDP from pods: \d+ checks failed\.$/)
    expect(after.stdout).toMatch(/pass, now fail: start: cluster IP, UDP, IPv4, from pod on node-2, at node-2: /)
    expect(await namespaces(sandbox)).not.toContain('kube-proxy-test')
  })
})

describe('iptables', () => {
  test('passes, removes what a killed run left, and names the node whose proxy stopped', async () => {
    await using sandbox = await inSandbox('iptables')
    const labels = { 'app.kubernetes.io/managed-by': 'kube-proxy-test' }
    const annotations = { 'kube-proxy-test/alive-until': '1' }
    await sandbox.api.create(NAMESPACES, { metadata: { name: 'kube-proxy-test', labels, annotations } })
    await sandbox.api.create(`${NAMESPACE}/services`, { metadata: { name: 'plain' }, spec: { ports: [{ port: 80 }] } })
    await passes(sandbox)

    const { nodes } = await sandbox.status()
    const { proxyPid } = nodes.find(({ name }) => name === 'node-2')!
    process.kill(proxyPid!, 'SIGSTOP')
    try {
      expect(await run(sandbox, ...soon, '--json', join(root, 'stopped.json'))).toMatchObject({ status: 2 })
    } finally {
      process.kill(proxyPid!, 'SIGCONT')
    }
    const { findings } = result('stopped.json')
    expect(findings[0]?.headline).toMatch(/^node-2: no Service works: \d+ checks failed\.$/)
    expect(findings[0]?.why).toContain('its proxy does not follow changes')
  })
})

describe('userspace', () => {
  test('passes, and leaves nothing after Ctrl-C', async () => {
    await using sandbox = await inSandbox('userspace')
    await passes(sandbox)

    const interrupted = start(sandbox)
    await eventually('it dials', () => (interrupted.said().includes('step 1') ? undefined : interrupted.said()))
    interrupted.interrupt()
    expect(await interrupted.finished).toMatchObject({ status: 130 })
    expect(await namespaces(sandbox)).not.toContain('kube-proxy-test')
  })
})

test('refuses a namespace that is not its own, nodes and rows that do not exist, and files that are no results', async () => {
  await using sandbox = await inSandbox('nftables')
  await sandbox.api.create(NAMESPACES, { metadata: { name: 'kube-proxy-test' } })
  const wrong = async (...args: string[]) => {
    const { status, stderr } = await run(sandbox, ...args)
    return [status, stderr.split('\n')[0]]
  }
  expect(await wrong()).toEqual([1, 'kube-proxy: Cannot use namespace kube-proxy-test: something else made it'])
  expect(await wrong('--nodes', 'node-9')).toEqual([1, 'kube-proxy: Cannot test node node-9: there are node-1, node-2'])
  expect((await wrong('--skip', 'nodeport'))[1]).toContain('--skip takes pod network, ')
  expect((await wrong('--compare', program))[1]).toContain('it is no result of kube-proxy test --json')
  expect(await namespaces(sandbox)).toContain('kube-proxy-test')
})
