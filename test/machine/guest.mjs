// What is tried on each kernel, inside of it, with the image's own Node and files: two pods and a machine outside, in network
// namespaces, and this node's proxy between them, in one mode after the other. Prints a line for each thing that was tried.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'

const modes = process.argv.slice(2)
const proxy = '/usr/local/bin/kube-proxy'
const node = '192.0.2.1'
const clusterIP = '10.96.0.10'
const networks = { pod1: '10.1.1', pod2: '10.1.2', outside: '192.0.2' }
const manifests = '/run/manifests'

run('ip', 'link', 'set', 'lo', 'up')
writeFileSync('/proc/sys/net/ipv4/ip_forward', '1')
mkdirSync(manifests, { recursive: true })
const places = Object.fromEntries(
  await Promise.all(Object.entries(networks).map(async ([name, net]) => [name, await openPlace(name, net)])),
)
// Without a route, a packet for a cluster IP is gone before a rule can refuse it. Who is there answers nothing.
run('ip', 'route', 'add', 'default', 'via', '192.0.2.2')
run('ip', 'netns', 'exec', 'outside', 'busybox', 'sysctl', '-q', '-w', 'net.ipv4.ip_forward=0')
const sctp = Object.keys(networks)
  .slice(0, 2)
  .map((name) => inside(name, ['perl', '/machine/sctp.pl', 'serve', name, '3868'], 'inherit'))
writeService()

for (const mode of modes) {
  writeEndpoints(['pod1', 'pod2'])
  const flags = [`--proxy-mode=${mode}`, '--strict-proxy-mode', `--manifests=${manifests}`, '--hostname-override=node']
  const child = spawn(proxy, [...flags, '--cluster-cidr=10.1.0.0/16', '--metrics-bind-address='], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (log += text))
  try {
    await check(mode, 'starts and serves', isHealthy)
    const both = (answers) => sameSet(answers, ['pod1', 'pod2'])
    await check(mode, 'TCP, pod to cluster IP', async () => both(await ask('pod1', 'tcp', [clusterIP, 80], 40)))
    await check(mode, 'TCP, outside to node port', async () => both(await ask('outside', 'tcp', [node, 30080], 40)))
    await check(mode, 'UDP, pod to cluster IP', async () => both(await ask('pod2', 'udp', [clusterIP, 53], 40)))
    if (mode !== 'userspace') await check(mode, 'SCTP, pod to cluster IP: a whole association', () => askSctp('pod1'))
    await check(mode, 'an endpoint goes: nobody is sent to it', async () => {
      writeEndpoints(['pod2'])
      return eventually(async () => sameSet(await ask('outside', 'tcp', [node, 30080], 20), ['pod2']))
    })
    await check(mode, 'no endpoint: refused', async () => {
      writeEndpoints([])
      return eventually(async () => sameSet(await ask('pod1', 'tcp', [clusterIP, 80], 3), ['ECONNREFUSED']))
    })
    child.kill('SIGTERM')
    await once(child, 'exit')
    await check(mode, 'removes what it wrote', async () => {
      const { status, stderr } = spawnSync(proxy, ['--cleanup'], { encoding: 'utf8' })
      if (status !== 0) return stderr
      const answers = await ask('pod1', 'tcp', [clusterIP, 80], 1)
      return sameSet(answers, ['no answer'])
    })
  } finally {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  }

  async function isHealthy() {
    return eventually(async () => {
      if (child.exitCode !== null) throw new Error(log)
      const { status } = await fetch('http://127.0.0.1:10256/healthz')
      if (status !== 200) return `healthz says ${status}`
      return sameSet(await ask('outside', 'tcp', [node, 30080], 20), ['pod1', 'pod2'])
    })
  }
}
for (const each of sctp) each.kill()
console.log('FINISHED')

/** `what` is true, or what is wrong. */
async function check(mode, name, what) {
  const started = performance.now()
  let found
  try {
    found = await what()
  } catch (error) {
    found = String(error.stack ?? error)
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(
    found === true ? `PASS ${mode}: ${name} (${seconds} s)` : `FAIL ${mode}: ${name} (${seconds} s): ${found}`,
  )
}

/** A minute and a half: the machine is an emulated one. */
async function eventually(what) {
  const end = performance.now() + 90_000
  for (;;) {
    const found = await what().catch((error) => String(error))
    if (found === true || performance.now() > end) return found
    await sleep(200)
  }
}

function sameSet(answers, expected) {
  const found = [...new Set(answers)].sort((a, b) => (a < b ? -1 : 1))
  return (
    JSON.stringify(found) === JSON.stringify(expected) ||
    `${JSON.stringify(answers)}, must be ${expected.join(' and ')}`
  )
}

async function openPlace(name, net) {
  run('ip', 'netns', 'add', name)
  run('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
  run('ip', 'address', 'add', `${net}.1/24`, 'dev', name)
  run('ip', 'link', 'set', name, 'up')
  for (const words of [
    'link set lo up',
    `address add ${net}.2/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${net}.1`,
  ])
    run('ip', '-n', name, ...words.split(' '))
  const agent = inside(name, [process.execPath, '/machine/agent.cjs', name], 'pipe')
  const answers = createInterface({ input: agent.stdout })[Symbol.asyncIterator]()
  await answers.next()
  return { agent, answers }
}

function inside(name, command, output) {
  return spawn('ip', ['netns', 'exec', name, ...command], { stdio: ['pipe', output, 'inherit'] })
}

async function ask(name, kind, [host, port], count) {
  const { agent, answers } = places[name]
  agent.stdin.write(`${JSON.stringify({ kind, host, port, count })}\n`)
  return JSON.parse((await answers.next()).value)
}

function askSctp(name) {
  const asked = Array.from({ length: 12 }, () => {
    const command = ['netns', 'exec', name, 'perl', '/machine/sctp.pl', 'ask', clusterIP, '3868']
    const { stdout, stderr } = spawnSync('ip', command, { encoding: 'utf8' })
    return stdout.trim() || stderr.trim() || 'no answer'
  })
  return sameSet(asked, ['pod1', 'pod2'])
}

function writeService() {
  const ports = [
    { name: 'tcp', protocol: 'TCP', port: 80, targetPort: 8080, nodePort: 30080 },
    { name: 'udp', protocol: 'UDP', port: 53, targetPort: 8053, nodePort: 30053 },
    { name: 'sctp', protocol: 'SCTP', port: 3868, targetPort: 3868, nodePort: 30868 },
  ]
  const spec = { type: 'NodePort', clusterIP, clusterIPs: [clusterIP], ipFamilies: ['IPv4'], ports }
  write('service', { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' }, spec })
  const addresses = [{ type: 'InternalIP', address: node }]
  write('node', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node' }, status: { addresses } })
}

function writeEndpoints(names) {
  write('slice', {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: names.map((name) => ({
      addresses: [`${networks[name]}.2`],
      conditions: { ready: true },
      nodeName: 'node',
    })),
    ports: [
      { name: 'tcp', protocol: 'TCP', port: 8080 },
      { name: 'udp', protocol: 'UDP', port: 8053 },
      { name: 'sctp', protocol: 'SCTP', port: 3868 },
    ],
  })
}

function write(name, object) {
  writeFileSync(`${manifests}/.${name}`, JSON.stringify(object))
  renameSync(`${manifests}/.${name}`, `${manifests}/${name}.json`)
}

function run(...command) {
  execFileSync(command[0], command.slice(1), { stdio: ['ignore', 'inherit', 'inherit'] })
}
