// What a pod can do for its user: look up names, run commands for kubectl, forward ports, be probed. With real kubectls: those
// of KUBECTLS, or the one in PATH.

import { spawn, spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { findKubectls } from './kubectl/kubectl.ts'
import { enterMachine, leftovers, makeRoot, removeRoot } from './support/machine.ts'
import { SandboxProcess } from './support/sandbox-process.ts'

enterMachine()
const root = makeRoot()
const kubectls = findKubectls()
const namespace = '/api/v1/namespaces/default'

let sandbox: SandboxProcess
let pod: string
beforeAll(async () => {
  sandbox = await SandboxProcess.start(root, '--dual-stack')
  pod = (await sandbox.status()).pods.find((one) => one.namespace === 'default')!.name
})
afterAll(async () => {
  await sandbox[Symbol.asyncDispose]()
  expect(leftovers(root)).toEqual([])
  removeRoot(root)
})

function inPod(script: string) {
  const { status, stdout, stderr } = sandbox.run('exec', pod, '--', 'sh', '-c', script)
  return { status, stdout, stderr }
}

describe('names', () => {
  test('a service answers by its name, short and long', () => {
    for (const name of [
      'whoami',
      'whoami.default',
      'whoami.default.svc.cluster.local',
      'whoami.default.svc.cluster.local.',
    ]) {
      const answer = expect.stringMatching(/^viola from whoami-/) as string
      expect(inPod(`curl -sS http://${name}:3000`)).toEqual({ status: 0, stdout: answer, stderr: '' })
    }
  })

  test('both families, and the way back', async () => {
    const { spec } = await sandbox.api.get(`${namespace}/services/whoami`)
    const found = inPod('getent ahosts whoami').stdout
    for (const ip of spec.clusterIPs) expect(found).toContain(ip)
    for (const ip of spec.clusterIPs) {
      expect(inPod(`getent hosts ${ip}`).stdout).toMatch(/whoami\.default\.svc\.cluster\.local$/m)
    }
  })

  test('a headless service has the addresses of its pods, by TCP where they are too many for a datagram', async () => {
    await sandbox.api.create(`${namespace}/services`, {
      metadata: { name: 'each' },
      spec: { clusterIP: 'None', selector: { app: 'whoami' }, ports: [{ name: 'http', port: 3000 }] },
    })
    const scale = (replicas: number) =>
      sandbox.api.patch('/apis/apps/v1/namespaces/default/deployments/whoami/scale', { spec: { replicas } })
    await scale(40)
    await eventually('all 40 have the name', () => {
      const lines = inPod('getent ahostsv4 each').stdout.match(/STREAM/g)?.length ?? 0
      return lines === 40 ? undefined : `${lines} have`
    })
    const log = await dnsLog()
    expect(log).toMatch(/^udp A each\.default\.svc\.cluster\.local from \S+: 40 records$/m)
    expect(log).toMatch(/^tcp A each\.default\.svc\.cluster\.local from \S+: 40 records$/m)
    await scale(3)
  })

  test('what is not the cluster does not exist, and it is quick to say so', () => {
    // A resolver that gets no answer waits for five seconds.
    const script = 's=$(date +%s); getent hosts example.com; echo $? $(($(date +%s) - s))'
    expect(inPod(script).stdout).toMatch(/^2 [0-4]\n$/)
  })

  test("a pod on the host's network looks where the machine does", async () => {
    await sandbox.api.create(`${namespace}/pods`, {
      metadata: { name: 'on-host' },
      spec: { hostNetwork: true, nodeName: 'node-1', containers: [{ name: 'c', image: 'i' }] },
    })
    await eventually('it runs', async () => {
      const { status } = await sandbox.api.get(`${namespace}/pods/on-host`)
      return status.phase === 'Running' ? undefined : status.phase
    })
    const { stdout } = sandbox.run('exec', 'on-host', '--', 'cat', '/etc/resolv.conf')
    expect(stdout).not.toContain('cluster.local')
  })
})

async function dnsLog(): Promise<string> {
  const pods = (await sandbox.status()).pods.filter((one) => one.namespace === 'kube-system')
  const logs = pods.map(({ name }) => sandbox.api.text(`/api/v1/namespaces/kube-system/pods/${name}/log`))
  return (await Promise.all(logs)).join('')
}

describe.skipIf(kubectls.length === 0).each(kubectls)('%s (skipped without a kubectl)', (program) => {
  const env = () => ({ ...process.env, HOME: root, KUBECONFIG: sandbox.path('kubeconfig') })
  const kubectl = (args: readonly string[], input = '') => {
    const { status, stdout, stderr } = spawnSync(program, args, {
      env: env(),
      input,
      encoding: 'utf8',
      timeout: 30_000,
      maxBuffer: 2 ** 24,
    })
    return { status, stdout, stderr }
  }

  test('exec: outputs apart, the exit code, the place', () => {
    const script =
      'hostname; curl -sS http://whoami:3000 > /dev/null && echo "$MESSAGE"; echo wrong > /dev/stderr; exit 7'
    expect(kubectl(['exec', pod, '--', 'sh', '-c', script])).toEqual({
      status: 7,
      stdout: `${pod}\nviola\n`,
      stderr: expect.stringMatching(/^wrong\ncommand terminated with exit code 7\n$/) as string,
    })
    expect(kubectl(['exec', pod, '--', 'no-such-program'])).toMatchObject({
      status: 127,
      stderr: expect.stringContaining('Cannot run no-such-program: there is no such program') as string,
    })
  })

  test('exec -i: megabytes in and out, and the end of the input', () => {
    const input = 'x'.repeat(3_000_000)
    expect(kubectl(['exec', '-i', pod, '--', 'wc', '-c'], input)).toMatchObject({ status: 0, stdout: '3000000\n' })
    const { stdout } = kubectl(['exec', pod, '--', 'head', '-c', '3000000', '/dev/zero'])
    expect(stdout.length).toBe(3_000_000)
  })

  test('exec -it: a terminal of the size of ours', () => {
    const inner = `${program} exec -it ${pod} -- sh -c 'tty; stty size; exit 4'`
    const args = ['-qec', `stty cols 99 rows 33; ${inner}`, '/dev/null']
    const { status, stdout } = spawnSync('script', args, { env: env(), encoding: 'utf8', timeout: 30_000 })
    expect(stdout).toMatch(/\/dev\/pts\/\d+\r\n33 99\r\n/)
    expect(status).toBe(4)
  })

  test('exec -it: all that a program prints, to its last line', () => {
    const args = ['-qec', `${program} exec -it ${pod} -- seq 200000`, '/dev/null']
    const { stdout } = spawnSync('script', args, { env: env(), encoding: 'utf8', timeout: 60_000, maxBuffer: 2 ** 24 })
    expect(stdout.match(/\d+\r\n/g)?.length).toBe(200_000)
  })

  test('exec -it: Ctrl-C is for the program in the pod', async () => {
    const inner = `${program} exec -it ${pod} -- sh -c 'echo begin; exec sleep 100'`
    const terminal = spawn('script', ['-qec', inner, '/dev/null'], { env: env(), stdio: ['pipe', 'pipe', 'inherit'] })
    let said = ''
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
    const exited = new Promise((resolve) => terminal.on('exit', resolve))
    await eventually('it runs', () => (said.includes('begin') ? undefined : said))
    terminal.stdin.write('\x03')
    expect(await exited).toBe(130)
  })

  test('exec: what is left behind by a client that goes away is ended', async () => {
    const marker = `${90_000 + Math.floor(Math.random() * 9000)}`
    const client = spawn(program, ['exec', pod, '--', 'sleep', marker], { env: env(), stdio: 'ignore' })
    const isRunning = () => spawnSync('pgrep', ['-f', `^sleep ${marker}$`]).status === 0
    await eventually('the program runs', () => (isRunning() ? undefined : 'it does not'))
    client.kill('SIGKILL')
    await eventually('the program is ended', () => (isRunning() ? 'it runs' : undefined))
  })

  test('port-forward: several connections, and a port where nothing listens', async () => {
    const client = spawn(program, ['port-forward', pod, ':3000', ':99'], {
      env: env(),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [client.stdout, client.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text))
    const portTo = (remote: number) => new RegExp(`127\\.0\\.0\\.1:(\\d+) -> ${remote}`).exec(said)?.[1]
    await eventually('it listens', () => (portTo(3000) === undefined || portTo(99) === undefined ? said : undefined))
    const url = `http://127.0.0.1:${portTo(3000)}`
    const answers = spawnSync(
      'sh',
      ['-c', `for i in 1 2 3; do curl -sS -m 10 ${url}; done; curl -sS -m 10 ${url}/client`],
      { encoding: 'utf8' },
    )
    expect(answers.stdout).toBe(`${`viola from ${pod}\n`.repeat(3)}127.0.0.1\n`)
    spawnSync('curl', ['-sS', '-m', '10', `http://127.0.0.1:${portTo(99)}`])
    await eventually('it says what is wrong', () =>
      /forwarding port 99 to pod .*ECONNREFUSED/.test(said) ? undefined : said,
    )
    client.kill()
  })

  test('attach says what there is instead', () => {
    const { status, stderr } = kubectl(['attach', pod])
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(/kubectl logs -f/) as string })
  })
})

describe('probes', () => {
  const probed = (name: string, container: object) =>
    sandbox.api.create(`${namespace}/pods`, {
      metadata: { name, labels: { app: name } },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [{ name: 'c', image: 'i', ports: [{ name: 'web', containerPort: 3000 }], ...container }],
      },
    })
  const untilReady = (name: string, wanted: boolean) =>
    eventually(`${name} is ${wanted ? '' : 'not '}ready`, async () => {
      const { status } = await sandbox.api.get(`${namespace}/pods/${name}`)
      const ready = status.conditions?.find(({ type }: { type: string }) => type === 'Ready')?.status
      return ready === (wanted ? 'True' : 'False') ? undefined : JSON.stringify(status.conditions)
    })
  const fail = (name: string, how: string | null) =>
    sandbox.api.patch(`${namespace}/pods/${name}`, { metadata: { annotations: { 'sandbox/fail': how } } })

  test.each([
    ['http', { httpGet: { port: 'web', path: '/ready' } }],
    ['tcp', { tcpSocket: { port: 3000 } }],
  ])('readiness by %s decides who gets traffic', async (name, action) => {
    await probed(name, { readinessProbe: { ...action, periodSeconds: 1, failureThreshold: 1 } })
    await sandbox.api.create(`${namespace}/services`, {
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ port: 80, targetPort: 'web' }] },
    })
    await untilReady(name, true)
    expect(inPod(`curl -sS -m 5 --retry 5 --retry-connrefused http://${name}`).stdout).toMatch(
      new RegExp(`from ${name}`),
    )
    await fail(name, 'refuse')
    await untilReady(name, false)
    await eventually('the service has no endpoint', async () => {
      const { items } = await sandbox.api.get(
        `/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D${name}`,
      )
      const ready = JSON.stringify(items).includes('"ready":true')
      return ready ? 'it has' : undefined
    })
    await fail(name, null)
    await untilReady(name, true)
  })

  test('readiness by a command', async () => {
    const file = join(root, '.ready')
    await probed('command', {
      readinessProbe: { exec: { command: ['test', '-e', file] }, periodSeconds: 1, timeoutSeconds: 10 },
    })
    await untilReady('command', false)
    spawnSync('touch', [file])
    await untilReady('command', true)
    rmSync(file)
    await untilReady('command', false)
    expect(existsSync(file)).toBe(false)
  })

  test('a pod that is not alive is restarted', async () => {
    const livenessProbe = { httpGet: { port: 3000 }, periodSeconds: 1, failureThreshold: 2 }
    await probed('mortal', { livenessProbe })
    await untilReady('mortal', true)
    await fail('mortal', 'hang')
    await eventually('it was restarted', async () => {
      const { status } = await sandbox.api.get(`${namespace}/pods/mortal`)
      return status.containerStatuses[0].restartCount > 0 ? undefined : 'never'
    })
  })
})
