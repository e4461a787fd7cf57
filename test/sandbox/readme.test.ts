// The transcript in README.md is what a person sees: it is made by typing its commands. What differs from run to run (names
// of pods, addresses that are given out, times) may differ; everything else may not. `vitest -u` writes it again.

import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { isWritten } from '../support/is-written.ts'
import { program, SandboxProcess } from './support/sandbox-process.ts'

enterMachine()
const readme = join(import.meta.dirname, '../../README.md')
const placeOf = (name: string) => new RegExp(`(<!-- ${name}: [^\\n]*-->\\n)([\\s\\S]*?)(<!-- \\/${name} -->)`)
const root = makeRoot()

// As for root, with files where root's are.
delete process.env['SUDO_USER']
process.env['KUBE_PROXY_SANDBOX_DIR'] = root

let sandbox: SandboxProcess
beforeAll(async () => {
  spawnSync(program, ['--version'])
  sandbox = await SandboxProcess.start(root)
})
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]()
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
})

test('the transcript in README.md is what its commands print', async ({ skip }) => {
  if (spawnSync('kubectl', ['version', '--client']).status !== 0)
    return skip('kubectl is missing (package kubernetes-client)')
  compare('transcript', await makeTranscript())
})

test('so is the one of a dead pod', async ({ skip }) => {
  if (spawnSync('kubectl', ['version', '--client']).status !== 0)
    return skip('kubectl is missing (package kubernetes-client)')
  compare('dead pod', await makeDeadPod())
})

function compare(name: string, made: string): void {
  const place = placeOf(name)
  const text = readFileSync(readme, 'utf8')
  if (isWritten)
    writeFileSync(
      readme,
      text.replace(place, (_, start: string, __, end: string) => `${start}${made}${end}`),
    )
  const [, , written = ''] = place.exec(readFileSync(readme, 'utf8')) ?? []
  expect(normalize(written)).toBe(normalize(made))
}

/** One of three pods fails, without retries and with them. */
async function makeDeadPod(): Promise<string> {
  const scaled = await scale(3)
  const { spec } = await sandbox.api.get('/api/v1/namespaces/default/services/whoami')
  const service = `http://${spec.clusterIP}:3000`
  const { items } = await sandbox.api.get('/api/v1/namespaces/default/pods?labelSelector=app%3Dwhoami')
  const pods = (items as PodObject[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const { metadata, status } = pods[0]!
  const pod = metadata.name
  const isDead = `! curl -s -m 1 http://${status.podIP}:3000`
  const ask = `for i in $(seq 200); do curl -s ${service} > /dev/null || echo failed; done | wc -l`
  const lines = [
    ...scaled,
    ...type(`kubectl annotate pod ${pod} sandbox/fail=refuse`),
    ...(await untilSo(isDead)),
    ...type(ask),
    ...type('kubectl annotate service whoami service.kube-proxy-ts.io/connect-retry=on'),
    ...(await untilSo(retriesOn('node-1'))),
    ...(await untilSo(retriesOn('node-2'))),
    ...type(ask),
    ...type(`kubectl annotate pod ${pod} sandbox/fail=hang --overwrite`),
    ...(await untilSo(isDead)),
    ...type(ask),
    ...type(`kubectl annotate pod ${pod} sandbox/fail=die --overwrite`),
    ...type(ask),
  ]
  const [without, refusing, hanging, dying] = lines.filter((line) => /^\d+$/.test(line)).map(Number)
  expect(without).toBeGreaterThan(0)
  expect({ refusing, hanging, dying }).toEqual({ refusing: 0, hanging: 0, dying: 0 })
  return `\n${lines.map((line) => `    ${line}`).join('\n')}\n\n`
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly status: { readonly podIP: string }
}

function retriesOn(node: string): string {
  return `./bin/kube-proxy sandbox exec ${node} -- nft list tables | grep -q kube-proxy-retry`
}

/** A person takes longer to type the next command than the cluster to follow the last one. */
async function untilSo(command: string): Promise<[]> {
  const env = { ...process.env, HOME: root, KUBECONFIG: sandbox.path('kubeconfig') }
  const cwd = join(import.meta.dirname, '../..')
  await eventually(
    `${command} succeeds`,
    () => (spawnSync('sh', ['-c', command], { env, cwd }).status === 0 ? undefined : 'it does not'),
    { withinMs: 10_000 },
  )
  return []
}

/** Types what the sandbox says to type, and a little more. */
async function makeTranscript(): Promise<string> {
  const { spec, status } = await sandbox.api.get('/api/v1/namespaces/default/services/whoami')
  const service = `http://${spec.clusterIP}:3000`
  const pod = (await sandbox.status()).pods.find(({ namespace }) => namespace === 'default')
  const sessions = [
    ['$ ./bin/kube-proxy sandbox', ...sandbox.output.trimEnd().split('\n')],
    [
      ...type(`export KUBECONFIG=${sandbox.path('kubeconfig')}`),
      ...type('kubectl get pods,services'),
      ...type(`curl ${service}`),
      ...type(`curl ${service}`),
      ...type(`curl http://172.30.0.11:30000`),
      ...type(`curl http://${status.loadBalancer.ingress[0].ip}:3000`),
      ...type(`kubectl exec ${pod!.name} -- curl -s http://whoami:3000`),
      ...(await scale(30)),
      ...type(`for i in $(seq 500); do curl -s ${service}; done | sort -u | wc -l`),
    ],
  ]
  const blocks = sessions.map((lines) => lines.map((line) => (line === '' ? '' : `    ${line}`)).join('\n'))
  return `\n${blocks.join('\n\nIn another terminal:\n\n')}\n\n`.replaceAll(root, '/run/kube-proxy-sandbox')
}

/** A person takes longer to type the next command than the pods to start. */
async function scale(replicas: number): Promise<string[]> {
  const lines = type(`kubectl scale deployment whoami --replicas=${replicas}`)
  await eventually(
    'all pods are ready',
    async () => {
      const { status } = await sandbox.api.get('/apis/apps/v1/namespaces/default/deployments/whoami')
      return status.readyReplicas === replicas ? undefined : `${status.readyReplicas} are`
    },
    { withinMs: 30_000 },
  )
  return lines
}

function type(command: string): string[] {
  // kubectl keeps what it learned at home.
  const env = { ...process.env, HOME: root, KUBECONFIG: sandbox.path('kubeconfig') }
  const cwd = join(import.meta.dirname, '../..')
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command.replaceAll(/curl (?!-s )/g, 'curl -sS ')], {
    encoding: 'utf8',
    env,
    cwd,
  })
  expect({ command, status, stderr }).toEqual({ command, status: 0, stderr: '' })
  return [`$ ${command}`, ...(stdout === '' ? [] : stdout.trimEnd().split('\n'))]
}

/** With what differs from run to run taken out. */
function normalize(text: string): string {
  return text
    .replace(/whoami-[a-z0-9]{8,10}-[a-z0-9]{5}/g, 'whoami-POD')
    .replace(/10\.96\.\d+\.\d+/g, '10.96.x.y')
    .replace(/10\.244\.\d+\.\d+/g, '10.244.x.y')
    .replace(/node-\d/g, 'node-N')
    .replace(/127\.0\.0\.1:\d+\/\?token=[\w-]+/g, '127.0.0.1:PORT/?token=TOKEN')
    .replace(/\b\d+(\.\d+)? ?s\b/g, 'N s')
    .replace(/^ +[1-9]\d$/gm, (line) => (line.trim() === '30' ? line : 'SOME'))
    .replace(/ +/g, ' ')
    .replace(/ +$/gm, '')
}
