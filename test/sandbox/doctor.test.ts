// `kube-proxy doctor` as a command: exit statuses, a proxy that is away, the whole node, the guide's screens. What it finds is in
// doctor-plants.test.ts.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { aPod, aSickPod, aSliceByHand } from './support/objects.ts'
import { isWritten } from '../support/is-written.ts'
import { program, SandboxProcess } from './support/sandbox-process.ts'

enterMachine()
const root = makeRoot()
const services = '/api/v1/namespaces/default/services'
const TAKEN = '192.0.2.80'

let sandbox: SandboxProcess

beforeAll(async () => {
  sandbox = await SandboxProcess.start(root, '--empty')
  const { api } = sandbox
  const pods = '/api/v1/namespaces/default/pods'
  await Promise.all([
    ...guideObjects('Pod').map((pod) => api.create(pods, pod)),
    api.create(pods, aPod('m1', 'node-1', 'mute')),
    api.create(pods, aSickPod()),
  ])
  for (const service of [...guideObjects('Service'), ...objects]) await api.create(services, service)
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  await api.create(slices, aSliceByHand('by-hand', { name: 'web', ready: true }))
  await api.create(slices, aSliceByHand('unready', { name: 'http', ready: false }))
  await eventually('the web answers the doctor', async () => {
    const { finding } = await doctor('default/web')
    return finding?.what
  })
})
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]()
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
})

/** Those of the file that a reader of the guide applies. */
function guideObjects(kind: string): object[] {
  const file = join(import.meta.dirname, '../../examples/broken-services.yaml')
  return parseAllDocuments(readFileSync(file, 'utf8'))
    .map((document) => document.toJS() as { kind: string })
    .filter((object) => object.kind === kind)
}

function aService(name: string, spec: object, labels: Readonly<Record<string, string>> = {}): object {
  const ports = [{ port: 80, targetPort: 'web' }]
  return { metadata: { name, labels }, spec: { selector: { app: 'web' }, ports, ...spec } }
}

const onNode2 = { name: 'b1' }
const objects = [
  // The oldest service that asks for an address gets it, and of one second the first by name.
  aService('web-early', { externalIPs: [TAKEN] }),
  aService('headless', { clusterIP: 'None' }),
  { metadata: { name: 'elsewhere' }, spec: { type: 'ExternalName', externalName: 'example.com' } },
  aService('adopted', {}, { 'service.kubernetes.io/service-proxy-name': 'other' }),
  { metadata: { name: 'unwritten' }, spec: { ports: [{ port: 80 }] } },
  aService('sick', { selector: { app: 'sick' } }),
  { metadata: { name: 'by-hand' }, spec: { ports: [{ name: 'http', port: 80 }] } },
  { metadata: { name: 'unready' }, spec: { ports: [{ name: 'http', port: 80 }] } },
  aService('inside', { selector: onNode2, internalTrafficPolicy: 'Local' }),
  aService('web-late', { externalIPs: [TAKEN] }),
  aService('deaf', { ports: [{ port: 80, targetPort: 4444 }] }),
  aService('mute', { selector: { app: 'mute' } }),
  aService('far', { selector: onNode2 }),
]

/** The API server's address for nodes: the user's kubeconfig has the machine's. */
function inside(): string {
  const config = parse(readFileSync(sandbox.path('kube-proxy.kubeconfig'), 'utf8')) as {
    clusters: [{ cluster: { server: string } }]
  }
  return config.clusters[0].cluster.server
}

interface Diagnosis {
  readonly finding: { readonly code: string; readonly what: string; readonly next: string } | null
}

const sandboxExec = (place: string) => ['sandbox', '--name', sandbox.name, 'exec', place, '--']
const sandboxEnv = () => ({ ...process.env, KUBE_PROXY_SANDBOX_DIR: root })

function on(place: string, ...command: readonly string[]): Promise<string> {
  const args = [...sandboxExec(place), ...command]
  const env = sandboxEnv()
  return new Promise((resolve, reject) => {
    execFile(program, args, { env }, (error, stdout, stderr) => {
      // The doctor's own exit status says that it found something.
      if (error !== null && error.code !== 2 && error.code !== 3) reject(new Error(`${command.join(' ')}: ${stderr}`))
      else resolve(stdout)
    })
  })
}

async function doctor(service: string, ...flags: readonly string[]): Promise<Diagnosis> {
  return JSON.parse(
    await on(
      'node-1',
      program,
      'doctor',
      service,
      '-o',
      'json',
      '--kubeconfig',
      sandbox.path('kubeconfig'),
      '--master',
      inside(),
      ...flags,
    ),
  )
}

async function expectFinding(code: string, service: string, ...flags: readonly string[]): Promise<void> {
  await eventually(`the doctor finds ${code}`, async () => {
    const { finding } = await doctor(service, ...flags)
    if (finding?.code !== code)
      return finding === null ? 'it finds nothing' : `it finds ${finding.code}: ${finding.what}`
    expect(finding.what).not.toBe('')
    expect(finding.next).toMatch(/^(kubectl|kube-proxy|nft|ip|iptables-nft|sysctl|dig|ps|conntrack) /)
    expect(finding.what).not.toMatch(/\.$/)
    return undefined
  })
}

const PROMPT = '    node-1# '

/** The page with what its commands print now. */
async function typeScreens(page: string): Promise<string> {
  const lines: string[] = []
  let isOutput = false
  for (const line of page.split('\n')) {
    if (line.startsWith(PROMPT)) {
      const command = line.slice(PROMPT.length)
      const flags = `--kubeconfig ${sandbox.path('kubeconfig')} --master ${inside()}`
      const typed = command.replaceAll(/^kube-proxy/g, program).replaceAll('--kubeconfig admin.conf', flags)
      const printed = (await on('node-1', 'sh', '-c', typed)).trimEnd()
      lines.push(line, ...(printed === '' ? [] : printed.split('\n').map((each) => (each === '' ? '' : `    ${each}`))))
      isOutput = true
    } else if (!isOutput || (line !== '' && !line.startsWith('    '))) {
      // What a command printed before is left out, with the empty lines in it; one stays behind it.
      if (isOutput) lines.push('')
      isOutput = false
      lines.push(line)
    }
  }
  return lines.join('\n')
}

/** With what differs from run to run taken out. */
function normalize(text: string): string {
  return text
    .replace(/10\.96\.\d+\.\d+/g, '10.96.x.y')
    .replace(/10\.244\.(\d+)\.\d+/g, '10.244.$1.y')
    .replace(/172\.30\.0\.1\d\d/g, '172.30.0.z')
    .replace(/process \d+/g, 'process N')
    .replace(/space: \d+ of \d+/g, 'space: N of M')
    .replace(/:[345]\d{4}\b/g, ':PORT')
    .replace(/\s+/g, ' ')
}

/** As a user without rights to the API asks: the proxy of the node is all that there is. */
async function doctorAlone(...args: readonly string[]): Promise<Diagnosis> {
  return JSON.parse(await on('node-1', program, 'doctor', ...args, '-o', 'json')) as Diagnosis
}

/** Exit status of the doctor. */
async function statusOf(...args: readonly string[]): Promise<number> {
  const printed = await on('node-1', 'sh', '-c', `${[program, 'doctor', ...args].join(' ')} > /dev/null 2>&1; echo $?`)
  return Number(printed.trim())
}

describe('of the node, one after the other', () => {
  test('a healthy service is clean without an API server: the proxy itself knows of readiness and ports', async () => {
    const diagnosis = (await doctorAlone('default/web')) as Diagnosis & {
      answers: { question: string; result: string }[]
    }
    expect(diagnosis.finding).toBeNull()
    expect(diagnosis.answers.filter(({ result }) => result !== 'yes')).toEqual([])
    expect(await statusOf('default/web')).toBe(0)
    expect((await doctorAlone('default/unready')).finding?.code).toBe('pods-not-ready')
  })

  test('the exit status tells a finding from a question that makes no sense', async () => {
    expect(await statusOf('default/unmatched')).toBe(2)
    expect(await statusOf('default/web', '--from', 'fd00::7')).toBe(1)
    expect(await statusOf('default/web', '--from', 'nosuch')).toBe(1)
    expect(await statusOf('default/web', '--via', 'post')).toBe(1)
  })

  test('no-endpoints, to one who cannot see pods', async () => {
    expect((await doctorAlone('default/unmatched')).finding?.code).toBe('no-endpoints')
  })

  test('kernel-differs: another process has made the table its own, and the proxy cannot heal it', async () => {
    const owner = spawn(program, [...sandboxExec('node-1'), 'nft', '-i'], {
      env: sandboxEnv(),
      stdio: ['pipe', 'ignore', 'inherit'],
    })
    const ended = once(owner, 'exit')
    owner.stdin.write('delete table ip kube-proxy; add table ip kube-proxy { flags owner; }\n')
    try {
      await expectFinding('kernel-differs', 'default/web')
      await eventually('the doctor of the node finds it, too', async () => {
        const { finding } = await doctorAlone()
        return finding?.code === 'kernel-differs' ? undefined : (finding?.what ?? 'it finds nothing')
      })
    } finally {
      // nft ends with its input, and the kernel removes what it owned.
      owner.stdin.end()
      await ended
    }
    await eventually('the proxy has healed it', async () => (await doctor('default/web')).finding?.what)
  })

  test('the node as a whole: what concerns all, and then each Service that has a problem', async () => {
    const args = ['--kubeconfig', sandbox.path('kubeconfig'), '--master', inside()]
    const text = await on('node-1', program, 'doctor', ...args)
    expect(text).toMatch(/ {2}yes {2}does the kernel have the rules that the proxy decided on/)
    expect(text).toMatch(/node-1: \d+ of its \d+ Services have problems:/)
    expect(text).toMatch(/^ {2}default\/unmatched: its selector app=wev matches no pod$/m)
    expect(text).not.toMatch(/default\/(headless|elsewhere|adopted|web):/)
    expect(text).toMatch(/^Next: kube-proxy doctor default\/\S+$/m)
    await on('node-1', 'sysctl', '-qw', 'net.ipv4.ip_forward=0')
    expect(await on('node-1', program, 'doctor')).toMatch(/^node-1: net.ipv4.ip_forward is 0/m)
    await on('node-1', 'sysctl', '-qw', 'net.ipv4.ip_forward=1')
  })

  test('proxy-silent', async () => {
    const { question } = JSON.parse(await on('node-1', program, 'explain', 'default/web', '-o', 'json')) as {
      question: { asked: string }
    }
    const pid = Number(/process (\d+)/.exec(question.asked)?.[1])
    process.kill(pid, 'SIGSTOP')
    try {
      await expectFinding('proxy-silent', 'default/web')
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  })

  test('proxy-none', async () => {
    // Where no place is named, or the sandbox's own API server, a node of the sandbox would be asked.
    const here = ['--control-socket', sandbox.path('nobody.sock'), '-o', 'json']
    const { finding } = JSON.parse(await on('machine', program, 'doctor', 'default/web', ...here)) as Diagnosis
    expect(finding?.code).toBe('proxy-none')
  })

  test('explain takes mode and settings from the ConfigMap of the proxies, and plan says what a node would get', async () => {
    const args = ['--kubeconfig', sandbox.path('kubeconfig'), '--master', inside()]
    const without = await on('node-1', program, 'explain', 'default/web', '--node', 'node-2', ...args)
    expect(without.replace(/\s+/g, ' ')).toContain(
      'with the default configuration, because ConfigMap kube-system/kube-proxy cannot be read',
    )
    const config = {
      'config.conf': 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: ipvs\n',
    }
    await sandbox.api.create('/api/v1/namespaces/kube-system/configmaps', {
      metadata: { name: 'kube-proxy' },
      data: config,
    })
    const told = await on('node-1', program, 'explain', 'default/web', '--node', 'node-2', ...args)
    expect(told).toMatch(/at node node-2 in mode ipvs/)
    expect(told.replace(/\s+/g, ' ')).toContain('configured by ConfigMap kube-system/kube-proxy')
    const given = await on(
      'node-1',
      program,
      'explain',
      'default/web',
      '--proxy-mode=iptables',
      '--node=node-2',
      ...args,
    )
    expect(given).toMatch(/in mode iptables/)
    const flags = ['--proxy-mode=nftables', '--hostname-override=node-1', '--cluster-cidr=10.244.0.0/16', '--family=4']
    const plan = await on('node-1', program, 'plan', ...args, ...flags)
    expect(plan).toMatch(/^\* nftables +IPv4 +nothing to do: the kernel has all of it$/m)
    expect(plan).toMatch(/^ {2}iptables +IPv4 +\d+ lines for iptables-restore$/m)
  })

  test('a pod sends the packet, and what the kernel did stands beside what was said', async () => {
    const name = ['--sandbox', sandbox.name]
    const sent = JSON.parse(
      await on('node-1', program, 'explain', 'a1', 'default/far', '--send', ...name, '-o', 'json'),
    ) as {
      agreement: string
      sent: { answer: string; outcome: string; trace: string[]; destination: string; differences: string[] }
    }
    expect(sent.sent).toMatchObject({ answer: 'connected', outcome: 'to', differences: [] })
    expect(sent.sent.destination).toMatch(/^10\.244\.2\.\d+:3000$/)
    expect(sent.agreement).toBe('agrees')
    expect(await on('node-1', 'nft', 'list', 'tables')).not.toContain('kube-proxy-explain')
  })

  test('interrupted in the middle, it removes every trace of itself', async () => {
    // An endpoint that does not answer: there is time to interrupt it.
    const command = `${program} explain default/mute --send & pid=$!
      for i in $(seq 200); do nft list tables | grep -q kube-proxy-explain && break; sleep 0.05; done
      nft list tables | grep -c kube-proxy-explain; kill -INT $pid; wait $pid; echo "status $?"
      for i in $(seq 100); do nft list tables | grep -q kube-proxy-explain || break; sleep 0.05; done
      nft list tables | grep -c kube-proxy-explain; pgrep -c -P $pid nft; true`
    const printed = await on('node-1', 'sh', '-c', command)
    expect(printed.trim().split('\n')).toEqual(['1', 'status 130', '0', '0'])
  })

  // Its commands are typed, and what they print stands below them. `vitest -u` writes it again.
  test('the screens of the guide are what its commands print', async () => {
    const guide = join(import.meta.dirname, '../../docs/guides/my-service-does-not-answer.md')
    const text = readFileSync(guide, 'utf8')
    const made = await typeScreens(text)
    if (isWritten) writeFileSync(guide, made)
    expect(normalize(readFileSync(guide, 'utf8'))).toBe(normalize(made))
  })

  test('and in the end it finds nothing', async () => {
    await eventually('nothing is wrong', async () => (await doctor('default/web')).finding?.what)
  })

  test('dns-silent: the name server has no pod any more', async () => {
    await sandbox.api.delete('/apis/apps/v1/namespaces/kube-system/deployments/kube-dns')
    await expectFinding('dns-silent', 'default/web')
  })
})
