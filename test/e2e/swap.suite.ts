// docs/guides/migrate.md, step by step, on one node: kube-proxy ends, this program starts, and back. Connections are open, and
// new ones are made, all the time.

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ModeName } from '../conformance/modes.ts'
import { eventually } from '../support/eventually.ts'
import { proxyFlags, ProxyProcess, startProxy } from '../support/proxy-process.ts'
import { openRig, type Rig } from '../support/rig.ts'
import { startSwapClients } from '../support/swap/clients.ts'
import { type KubeProxyMode, startKubeProxy } from '../support/swap/kube-proxy.ts'
import { swapObjects } from '../support/swap/objects.ts'
import { compareRules, readRules } from '../support/swap/rules.ts'

export interface SwapPath {
  readonly theirs: KubeProxyMode
  /** One after the other. The last is theirs: from another mode kube-proxy does not come back without a gap. */
  readonly ours: readonly ModeName[]
}

export function testSwap(paths: readonly SwapPath[]): void {
  let rig: Rig
  beforeEach(async () => {
    rig = await openRig()
    rig.cluster.put(...swapObjects)
  })
  afterEach(() => rig[Symbol.asyncDispose]())

  /** What a node has that never had another proxy. */
  const fresh = new Map<ModeName, readonly string[]>()
  const modes = [...new Set(paths.flatMap(({ ours }) => ours))]

  test.for(modes)('%s mode, on a node that had no proxy: --cleanup leaves nothing', async (mode) => {
    const before = rules()
    await using proxy = await start(mode)
    fresh.set(mode, rules())
    await proxy.stop('SIGTERM')
    await run('--cleanup')
    expect(compareRules(before, rules())).toEqual(nothing)
  })

  describe.each(paths)('kube-proxy in $theirs mode, this in $ours, and kube-proxy again', ({ theirs, ours }) => {
    test('no connection is lost, and nothing stays behind', async () => {
      const first = await startKubeProxy(rig, theirs)
      const before = rules()
      await using clients = await startClients()
      const more = () => clients.more()
      // kubectl label node NODE kube-proxy-ts=yes
      await first.stop()
      await more()
      for (const mode of ours) {
        await run('--init-only', ...flags(mode))
        await using proxy = await start(mode)
        await more()
        const what = `what mode ${mode} left of others, or lacks`
        await becomes(what, fresh.get(mode) ?? [])
        await proxy.stop('SIGTERM')
        await more()
      }
      // kubectl label node NODE kube-proxy-ts-
      const second = await startKubeProxy(rig, theirs)
      await more()
      await run('--cleanup-leftovers', `--proxy-mode=${theirs}`)
      await more()
      for (const { losses, connections } of await clients.stop()) {
        expect(losses).toEqual([])
        expect(connections).toBeGreaterThan(20)
      }
      await becomes('what stays behind', before)
      await second.stop()
    })
  })

  const flags = (mode: ModeName) => proxyFlags({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })

  async function start(mode: ModeName): Promise<ProxyProcess> {
    const proxy = await startProxy({ netns: rig.network.node, mode, kubeconfig: rig.cluster.kubeconfig })
    await rig.settled()
    return proxy
  }

  /** Runs the program to its end, which is to be a good one. */
  async function run(...args: string[]): Promise<void> {
    await using program = new ProxyProcess(rig.network.node, args)
    expect(await program.exited, program.logTail()).toBe('0')
  }

  function becomes(what: string, expected: readonly string[]): Promise<void> {
    return eventually(what, () => {
      try {
        return told(compareRules(expected, rules()))
      } catch (error) {
        // A table was removed while it was read.
        return String(error)
      }
    })
  }

  /** The services with which rig.settled() asks come and go; kube-proxy forgets them a while later. */
  function rules(): string[] {
    return readRules(rig.network.node).filter((line) => !/default\/svc-\d+|10\.5\.0\.|fd05::/.test(line))
  }

  const startClients = () => startSwapClients(rig.network)
}

const nothing = { gone: [], added: [] }

function told(difference: ReturnType<typeof compareRules>): string | undefined {
  const lines = [...difference.gone.map((line) => `- ${line}`), ...difference.added.map((line) => `+ ${line}`)]
  return lines.length === 0 ? undefined : lines.join('\n')
}
