// A session with real kubectl against the embedded API server and its controllers, and what it prints.

import { join } from 'node:path'
import { spawn } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { aPod, session } from './session.ts'
import { eventually } from '../../support/eventually.ts'
import { findKubectls, Kubectl, normalize } from './kubectl.ts'
import { registerNode, publishApiServer } from '../../../packages/sandbox/src/controllers/cluster-objects.ts'
import { startApiServer } from '../../../packages/sandbox/src/apiserver/start-api-server.ts'
import { startControllers } from '../../../packages/sandbox/src/controllers/start-controllers.ts'
import type { ApiServer } from '../../../packages/sandbox/src/apiserver/start-api-server.ts'
import type { Step } from './session.ts'

const kubectls = findKubectls()
const golden = join(import.meta.dirname, 'session.golden')

interface Cluster extends AsyncDisposable {
  readonly server: ApiServer
}

async function openCluster(): Promise<Cluster> {
  const server = await startApiServer({ serviceCidrs: ['10.96.0.0/16', 'fd00:96::/112'] })
  const controllers = startControllers({
    registry: server.registry,
    loadBalancerPool: ['192.0.2.0/24'],
    drainSeconds: 0,
  })
  for (const n of [1, 2]) {
    const zone = n === 1 ? 'zone-a' : 'zone-b'
    const node = { name: `node-${n}`, zone, podCidrs: [`10.64.${n}.0/24`], addresses: [`172.30.0.${n}`] }
    registerNode(server.registry, { ...node, kernelVersion: '6.12.0' }, 'v1.36.0')
  }
  publishApiServer(server.registry, '10.96.0.0/16', { ips: ['172.30.0.254'], port: 6443 })
  return {
    server,
    async [Symbol.asyncDispose]() {
      await controllers.close()
      await server.close()
    },
  }
}

describe.skipIf(kubectls.length === 0)('kubectl (skipped without a kubectl in PATH or KUBECTLS)', () => {
  it.each(kubectls)('prints what it prints for any cluster: %s', async (program) => {
    await using cluster = await openCluster()
    using kubectl = new Kubectl(program, cluster.server.kubeconfig())
    const transcript: string[] = []
    let pod = ''
    for (const step of session) {
      if (step.command.includes(aPod) && pod === '') {
        pod = (await kubectl.run(['get', 'pods', '-l', 'app=whoami', '-o', 'name'])).text.split('\n')[0]!
      }
      const text = await perform(kubectl, step, pod)
      transcript.push(`$ kubectl ${step.command}\n${text}`)
    }
    await expect(transcript.join('\n')).toMatchFileSnapshot(golden)
    expect(kubectl.leftovers).toEqual([])
  })

  it.each(kubectls)('watches: %s', async (program) => {
    await using cluster = await openCluster()
    using kubectl = new Kubectl(program, cluster.server.kubeconfig())
    await kubectl.run(['create', '-f', '-'], session.find(({ stdin }) => stdin !== undefined)!.stdin)
    const watch = spawn(kubectl.program, ['get', 'pods', '-w'], { env: kubectl.environment })
    let printed = ''
    watch.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    await eventually('the watch begins', () => (/NAME/.test(printed) ? undefined : 'nothing printed'))
    await kubectl.run(['scale', 'rc', 'whoami', '--replicas=4'])
    await eventually('the new pod runs', () => {
      const states = /whoami-\w+ +0\/1 +Pending[\s\S]*0\/1 +ContainerCreating[\s\S]*1\/1 +Running/
      return states.test(printed) ? undefined : printed
    })
    watch.kill()
  })
})

/** Runs a step until its output is what it waits for. */
async function perform(kubectl: Kubectl, step: Step, pod: string): Promise<string> {
  const args = step.command.split(' ').map((word) => (word === aPod ? pod : word))
  let text = ''
  await eventually(`kubectl ${step.command} prints ${step.until?.source ?? ''}`, async () => {
    const printed = await kubectl.run(args, step.stdin)
    text = printed.text
    return step.until === undefined || step.until.test(text) ? undefined : text
  })
  const lines = normalize(text).split('\n')
  const kept = step.lines === undefined ? lines : lines.filter((line) => step.lines!.test(line))
  return `${kept.join('\n').trimEnd()}\n`
}
