// A pod that refuses, hangs or dies, and 200 clients that ask: with connect retry, none of them sees a failed attempt to connect.
// In every mode.

import { spawnSync } from 'node:child_process'
import { expect } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { ask } from './support/ask.ts'
import { describeModes } from './support/modes.ts'
import type { SandboxProcess } from './support/sandbox-process.ts'

const namespace = '/api/v1/namespaces/default'
const CLIENTS = 200
const AT_ONCE = 8
/** A connection that was made, and then ended without an answer. */
const BROKEN = ['ECONNRESET', 'socket hang up']

/** What became of clients that were not answered, one text each. */
async function askOften(sandbox: SandboxProcess, ip: string, clients = CLIENTS): Promise<string[]> {
  const from = await sandbox.place('machine')
  const failures: string[] = []
  let left = clients
  const askInTurn = async () => {
    while (left-- > 0) {
      const outcome = await ask(from, ip, 3000)
      if (typeof outcome === 'string') failures.push(outcome)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, askInTurn))
  return failures
}

async function readyPods(sandbox: SandboxProcess): Promise<{ name: string; ip: string }[]> {
  const { items } = await sandbox.api.get(`${namespace}/pods?labelSelector=app%3Dwhoami`)
  return (items as PodObject[])
    .filter(({ status }) => status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'))
    .map(({ metadata, status }) => ({ name: metadata.name, ip: status.podIP }))
}

interface PodObject {
  readonly metadata: { readonly name: string }
  readonly status: {
    readonly podIP: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

describeModes({
  flags: [],

  async prepare(sandbox) {
    const annotations = { 'service.kube-proxy-ts.io/connect-retry': 'on' }
    await sandbox.api.patch(`${namespace}/services/whoami`, { metadata: { annotations } })
  },

  define(test, mode) {
    for (const fate of ['refuse', 'hang', 'die'] as const) {
      test(`${CLIENTS} clients of three pods, of which one is reported to ${fate}`, async (sandbox) => {
        const { spec } = await sandbox.api.get(`${namespace}/services/whoami`)
        await eventually('all pods serve, and the proxies have heard of the annotation', async () => {
          const pods = await readyPods(sandbox)
          if (pods.length !== 3) return `${pods.length} pods are ready`
          const tables = sandbox.run('exec', 'node-1', '--', 'nft', 'list', 'tables').stdout
          if (mode !== 'userspace' && !tables.includes('kube-proxy-retry')) return 'no table of retries'
          return (await askOften(sandbox, spec.clusterIP, 30)).length === 0 ? undefined : 'not all are answered'
        })
        const [victim] = await readyPods(sandbox)
        const fail = (how: string | null) =>
          sandbox.api.patch(`${namespace}/pods/${victim!.name}`, { metadata: { annotations: { 'sandbox/fail': how } } })
        await fail(fate)
        // Those that were being answered when it died are broken. No retry helps them: only they know what they had asked.
        const failures = await askOften(sandbox, spec.clusterIP)
        expect(failures.filter((failure) => !BROKEN.includes(failure))).toEqual([])
        expect(failures.length).toBeLessThanOrEqual(AT_ONCE)
        await eventually('it is dead', () =>
          spawnSync('curl', ['-s', '-m', '1', `http://${victim!.ip}:3000`]).status === 0 ? 'it answers' : undefined,
        )
        expect(await askOften(sandbox, spec.clusterIP, 30)).toEqual([])
        await fail(null)
      })
    }
  },
})
