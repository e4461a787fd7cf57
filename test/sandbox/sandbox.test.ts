// The sandbox from the outside: what it makes, what it says, and that nothing is left of it however it ends.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { whoamiDeployment, whoamiService } from '../../packages/sandbox/src/example.ts'
import { eventually } from '../support/eventually.ts'
import { patience } from '../support/patience.ts'
import { findKubectls } from './kubectl/kubectl.ts'
import { ask, askUdp } from './support/ask.ts'
import { enterMachine, leftovers, makeRoot, processesOf, removeRoot } from './support/machine.ts'
import { program, runSandbox, SandboxProcess } from './support/sandbox-process.ts'
import { spawnSync } from 'node:child_process'

enterMachine()
const root = makeRoot()
beforeAll(() => {
  // The first start of the program builds it.
  spawnSync(program, ['--version'])
})
afterAll(() => removeRoot(root))

describe('a sandbox', () => {
  let sandbox: SandboxProcess
  beforeAll(async () => {
    sandbox = await SandboxProcess.start(root)
  })
  afterAll(async () => {
    await sandbox[Symbol.asyncDispose]()
    expect(leftovers(root)).toEqual([])
  })

  test('says what it made', () => {
    expect(sandbox.output).toMatch(/^A cluster of 2 nodes in mode nftables, with 3 pods and 1 service, ready in/)
    expect(sandbox.output).toMatch(/^node +node-2 +172\.30\.0\.12 +pods 10\.244\.2\.0\/24$/m)
    expect(sandbox.output).toMatch(
      /^service +whoami +10\.96\.\d+\.\d+:3000 +node port 30000 +load balancer 172\.30\.0\.\d+:3000$/m,
    )
  })

  // Those with kubectl are tried in pods.test.ts and readme.test.ts.
  test('every command that it tells to type works as it stands', () => {
    const lines = sandbox.output.split('\n').flatMap((line) => /^ {2}([^#]+?)(?: +#.*)?$/.exec(line)?.[1] ?? [])
    // The page has a URL and is for a browser.
    const commands = lines.filter((line) => !line.startsWith('http://'))
    expect(commands).toHaveLength(12)
    const tried = commands.filter((command) => !command.startsWith('kubectl') && !command.startsWith('export'))
    const type = (command: string) => {
      const env = { ...process.env, KUBE_PROXY_SANDBOX_DIR: root }
      return spawnSync('sh', ['-c', command], { encoding: 'utf8', env, cwd: process.cwd() })
    }
    const asking = tried.filter((command) => /kube-proxy (explain|doctor|top|flows) ?/.test(command))
    expect(asking).toHaveLength(4)
    // top and flows go on until they are ended.
    for (const command of asking.filter((each) => !/kube-proxy (top|flows)/.test(each))) {
      const { stdout, stderr, status } = type(command)
      expect({ command, status, stderr }).toEqual({
        command,
        status: 0,
        stderr: expect.stringContaining('asking node-1') as string,
      })
      expect(stdout).toContain('whoami')
    }
    const { status, stderr } = type('./bin/kube-proxy doctor default/nobody')
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: expect.stringContaining('to type on node-1: kube-proxy sandbox exec node-1 -- COMMAND\n') as string,
    })
    const clients = tried.filter((command) => !asking.includes(command))
    expect(clients).toHaveLength(4)
    for (const command of clients) {
      const { stdout, status } = type(command)
      expect({ command, status, stdout }).toEqual({
        command,
        status: 0,
        stdout: expect.stringMatching(/^(viola from whoami-[a-z0-9]{8,10}-[a-z0-9]{5}|10\.244\.\d\.\d+)\n$/) as string,
      })
    }
  })

  test('the classic walk-through: the cluster IP answers for one pod, then for another', async () => {
    const machine = await sandbox.place('machine')
    const { spec } = await sandbox.api.get('/api/v1/namespaces/default/services/whoami')
    const seen = new Set<string>()
    await eventually('all three pods answer', async () => {
      const reply = await ask(machine, spec.clusterIP, 3000)
      if (typeof reply === 'string') return { fatal: reply }
      expect(reply.body).toBe(`viola from ${reply.pod}\n`)
      seen.add(reply.body)
      return seen.size === 3 ? undefined : [...seen].join()
    })
    machine.close()
  })

  test('datagrams come back with the name of the pod and the address of the client', async () => {
    await sandbox.api.create('/api/v1/namespaces/default/services', {
      metadata: { name: 'echo' },
      spec: {
        selector: { app: 'whoami' },
        clusterIP: '10.96.50.50',
        ports: [{ protocol: 'UDP', port: 53, targetPort: 3000 }],
      },
    })
    const machine = await sandbox.place('machine')
    await eventually('the service answers', async () => {
      const reply = await askUdp(machine, '10.96.50.50', 53)
      if (typeof reply === 'string') return reply
      expect(reply.body).toMatch(
        /^viola from whoami-[-\w]{14,16}\nclient (172\.30\.0\.11|10\.244\.1\.1) port \d+ to port 3000\nhello$/,
      )
      return undefined
    })
    machine.close()
  })

  test('exec runs in a pod, with its host name and its environment, and answers with the status', () => {
    const pod = /whoami-[a-z0-9]{8,10}-[a-z0-9]{5}/.exec(sandbox.output)![0]
    const script = 'hostname; echo $HOSTNAME $MESSAGE; exit 7'
    expect(sandbox.run('exec', pod, '--', 'sh', '-c', script)).toMatchObject({
      status: 7,
      stdout: `${pod}\n${pod} viola\n`,
    })
    expect(sandbox.run('exec', `default/${pod}`, '--', 'true').status).toBe(0)
    expect(sandbox.run('exec', `pod/${pod}`, '--', 'true').status).toBe(0)
  })

  test('a pod logs whom it answered', async () => {
    const pod = (await sandbox.status()).pods.find(({ namespace }) => namespace === 'default')
    const machine = await sandbox.place('machine')
    await ask(machine, pod!.addresses[0]!, 3000, '/who')
    machine.close()
    const line = /^GET \/who from 172\.30\.0\.1 port \d+\n$/
    expect(await sandbox.api.text(`/api/v1/namespaces/default/pods/${pod!.name}/log?tailLines=1`)).toMatch(line)
    const [kubectl = 'kubectl'] = findKubectls()
    const env = { ...process.env, KUBECONFIG: sandbox.path('kubeconfig') }
    expect(spawnSync(kubectl, ['logs', pod!.name, '--tail=1'], { encoding: 'utf8', env }).stdout).toMatch(line)
  })

  test('exec runs on a node', () => {
    expect(sandbox.run('exec', 'node-1', '--', 'hostname').stdout).toBe('node-1\n')
  })

  test('exec says what there is when a name is wrong, and what is missing when a program is', () => {
    expect(sandbox.run('exec', 'node-7', '--', 'true')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /^kube-proxy: Cannot run in node-7: there is no such pod or node; there are node-1, node-2, .*whoami-/,
      ) as string,
    })
    expect(sandbox.run('exec', 'node-1', '--', 'no-such-program').stderr).toBe(
      'kube-proxy: Cannot run no-such-program: there is no such program\n',
    )
  })

  test('kubeconfig prints the path of a file for its owner alone', () => {
    expect(sandbox.run('kubeconfig').stdout).toBe(`${sandbox.path('kubeconfig')}\n`)
    const copy = join(root, '.copy')
    spawnSync('sh', ['-c', `${program} sandbox kubeconfig > ${copy}`], {
      env: { ...process.env, KUBE_PROXY_SANDBOX_DIR: root },
    })
    expect(readFileSync(copy, 'utf8')).toBe(readFileSync(sandbox.path('kubeconfig'), 'utf8'))
  })

  test('status tells of nodes and pods, for people and for programs', () => {
    expect(sandbox.run('status').stdout).toMatch(
      /^node-1 +172\.30\.0\.11 +nftables +healthy +\d+ +0 +10\.244\.1\.0\/24$/m,
    )
    const [status] = JSON.parse(sandbox.run('status', '-o', 'json').stdout) as [{ pods: unknown[]; nodes: unknown[] }]
    expect(status).toMatchObject({ name: 'sandbox', nodes: [{ name: 'node-1' }, { name: 'node-2' }] })
    expect(status.pods).toHaveLength(5)
  })

  test('thirty pods are ready within five seconds', async () => {
    const started = performance.now()
    await sandbox.api.patch('/apis/apps/v1/namespaces/default/deployments/whoami/scale', {
      spec: { replicas: 30 },
    })
    await eventually('30 pods are ready', async () => {
      const { status } = await sandbox.api.get('/apis/apps/v1/namespaces/default/deployments/whoami')
      return status.readyReplicas === 30 ? undefined : `${status.readyReplicas}`
    })
    expect(performance.now() - started).toBeLessThan(5000 * patience())
    const { pods } = await sandbox.status()
    expect(pods.filter(({ namespace }) => namespace === 'default')).toHaveLength(30)
  })

  test('ip netns knows the namespaces of nodes and pods', async () => {
    const [pod] = (await sandbox.status()).pods
    const known: [namespace: string, address: string][] = [
      ['node-1', /^node +node-1 +(\S+)/m.exec(sandbox.output)![1]!],
      [pod!.name, pod!.addresses[0]!],
    ]
    for (const [namespace, address] of known) {
      const command = ['netns', 'exec', `sandbox-${namespace}`, 'ip', '-o', '-4', 'address', 'show', 'eth0']
      expect(spawnSync('ip', command, { encoding: 'utf8' }).stdout).toContain(` ${address}/`)
    }
  })

  test('a second sandbox has a name and addresses of its own, and both work', async () => {
    const second = await SandboxProcess.start(root, '--nodes', '1')
    expect(second.name).toBe('sandbox-2')
    expect(second.output).toMatch(/^node +node-1 +172\.30\.1\.11 +pods 10\.243\.1\.0\/24$/m)
    const machine = await second.place('machine')
    for (const one of [sandbox, second]) {
      const { spec } = await one.api.get('/api/v1/namespaces/default/services/whoami')
      expect(await ask(machine, spec.clusterIP, 3000)).toMatchObject({
        body: expect.stringMatching(/^viola from/) as string,
      })
    }
    machine.close()
    // What the first one said to type still means the first one.
    expect(runSandbox(root, 'kubeconfig').stdout).toBe(`${sandbox.path('kubeconfig')}\n`)
    expect(runSandbox(root, 'down', '--name', 'sandbox-2')).toMatchObject({
      status: 0,
      stdout: 'Sandbox sandbox-2 is down.\n',
    })
    expect(await second.exited).toBe(0)
    expect(await sandbox.status()).toMatchObject({ name: 'sandbox' })
  })

  test('a name that is taken is refused', () => {
    expect(runSandbox(root, '--name', 'sandbox')).toMatchObject({
      status: 1,
      stderr: `kube-proxy: Cannot start sandbox sandbox: it is running already, as process ${sandbox.pid}\n`,
    })
  })
})

describe('a sandbox ends', () => {
  let sandbox: SandboxProcess | undefined
  afterEach(async () => {
    await sandbox?.[Symbol.asyncDispose]()
    expect(leftovers(root)).toEqual([])
  })

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('by %s, and nothing is left', async (signal) => {
    sandbox = await SandboxProcess.start(root, '--nodes', '1')
    sandbox.signal(signal)
    expect(await sandbox.exited).toBe(0)
  })

  test('by a signal while it starts, and nothing is left', async () => {
    sandbox = new SandboxProcess(root, [])
    // The launcher runs programs, too, before there is anything to take down.
    const started = () => processesOf(root).filter((line) => line.includes('/dist/src/cli/main.js'))
    await eventually('it has begun', () => (started().length > 1 ? undefined : 'no'), { everyMs: 1 })
    sandbox.signal('SIGTERM')
    await sandbox.exited
  })

  test('by kill -9: its processes and networks end with it, and down clears the rest', async () => {
    sandbox = await SandboxProcess.start(root, '--nodes', '1')
    sandbox.signal('SIGKILL')
    await sandbox.exited
    await eventually('its processes have ended', () => processesOf(root).join('\n') || undefined)
    expect(runSandbox(root, 'down')).toMatchObject({ status: 0, stdout: 'Cleared what sandbox sandbox had left.\n' })
    await eventually('its links are gone', () => leftovers(root).join('\n') || undefined)
  })

  test('by kill -9, and the next one starts in its place', async () => {
    const first = await SandboxProcess.start(root, '--nodes', '1')
    first.signal('SIGKILL')
    await first.exited
    sandbox = await SandboxProcess.start(root, '--nodes', '1')
    expect(sandbox.name).toBe('sandbox')
    // While the kernel still takes down the links of the first, its addresses are taken.
    expect(sandbox.output).toMatch(/^node +node-1 +172\.30\.[01]\.11 /m)
  })
})

describe('kube-proxy sandbox', () => {
  test('--detach returns when it is ready; down ends it', async () => {
    const started = runSandbox(root, '--detach', '--nodes', '1')
    expect(started).toMatchObject({ status: 0, stderr: '' })
    expect(started.stdout).toMatch(/To take everything down: .*kube-proxy sandbox down\n$/)
    expect(runSandbox(root, 'status').stdout).toContain('healthy')
    expect(runSandbox(root, 'down')).toMatchObject({ status: 0, stdout: 'Sandbox sandbox is down.\n' })
    expect(leftovers(root)).toEqual([])
  })

  test('is ready within two seconds', () => {
    // The best of three: this machine may have other things to do.
    const seconds: number[] = []
    while (seconds.length < 3 && !seconds.some((each) => each <= 2 * patience())) {
      seconds.push(Number(/ready in ([\d.]+) s/.exec(runSandbox(root, '--detach').stdout)?.[1]))
      runSandbox(root, 'down')
    }
    expect(Math.min(...seconds)).toBeLessThanOrEqual(2 * patience())
  })

  test('--empty starts without the example', async () => {
    await using sandbox = await SandboxProcess.start(root, '--empty', '--nodes', '1')
    expect(sandbox.output).toMatch(/^A cluster of 1 node in mode nftables, with 0 pods and 0 services, ready in/)
    const { items } = await sandbox.api.get('/api/v1/services')
    expect(items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)).toEqual([
      'kubernetes',
      'kube-dns',
    ])
  })

  test('--dual-stack gives nodes, pods and services addresses of both families', async () => {
    await using sandbox = await SandboxProcess.start(root, '--dual-stack')
    const { spec } = await sandbox.api.get('/api/v1/namespaces/default/services/whoami')
    expect(spec.ipFamilies).toEqual(['IPv4', 'IPv6'])
    for (const name of ['node-1', 'node-2', 'machine']) {
      const place = await sandbox.place(name)
      for (const ip of spec.clusterIPs)
        expect(await ask(place, ip, 3000)).toMatchObject({ body: expect.stringMatching(/^viola from/) as string })
      place.close()
    }
  })

  test.each([
    [['--node=3'], 'unknown option --node (is --nodes meant?)'],
    [['--nodes', '0'], '--nodes must be from 1 to 100, not "0"'],
    [['--proxy-mode', 'kernelspace'], /^--proxy-mode must be one of .*nftables.*, not "kernelspace"$/],
    [['stop'], 'unknown command sandbox stop; commands: up, exec, mode, api-server, kubeconfig, status, down'],
    [['statsu'], 'unknown command sandbox statsu (is status meant?)'],
    [['exec'], 'sandbox exec needs POD|NODE: kube-proxy sandbox exec POD|NODE [-- COMMAND...]'],
    [['down', '--nodes=2'], 'unknown option --nodes; sandbox down takes --name'],
    [['--name'], '--name needs a value: --name NAME'],
  ])('%j is refused with a reason', (args, reason) => {
    const { status, stderr } = runSandbox(root, ...args)
    const [, said = ''] = /^kube-proxy: (.*)\nSee kube-proxy sandbox --help\n$/.exec(stderr) ?? []
    expect({ status, said }).toEqual({
      status: 2,
      said: typeof reason === 'string' ? reason : expect.stringMatching(reason),
    })
  })

  test.each([['--name', 'A b'], ['exec', 'node-1'], ['kubeconfig'], ['down']])('%s fails with a reason', (...args) => {
    expect(runSandbox(root, ...args)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^kube-proxy: Cannot .+\n$/) as string,
    })
  })

  test('--help tells of every flag and command', () => {
    const { status, stdout } = runSandbox(root, '--help')
    expect(status).toBe(0)
    for (const word of [
      '--nodes',
      '--proxy-mode',
      '--dual-stack',
      '--empty',
      '--detach',
      '--name',
      'exec',
      'kubeconfig',
      'status',
      'down',
    ]) {
      expect(stdout).toContain(word)
    }
  })
})

test('examples/whoami.yaml is what a sandbox starts with', () => {
  const text = readFileSync(join(import.meta.dirname, '../../examples/whoami.yaml'), 'utf8')
  expect(parseAllDocuments(text).map((document) => document.toJS() as unknown)).toEqual([
    whoamiDeployment,
    whoamiService,
  ])
})
