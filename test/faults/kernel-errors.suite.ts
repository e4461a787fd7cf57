// System calls that fail: the program says so, goes on, tries again, and is right once the fault is gone.

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { tcpProbe } from '../support/netns/probe.ts'
import { patience } from '../support/patience.ts'
import { FaultRig } from './fault-rig.ts'
import type { FaultyMode } from './modes.ts'
import { sampleObjects, steadyTargets } from './samples.ts'
import type { Errno, FaultyCall } from './shim.ts'

/** With a pattern only these calls fail: others are made by what is the same in another mode. */
export function testKernelErrors(mode: FaultyMode, only = /./): void {
  describe(`${mode.label}: system calls that fail`, () => {
    let faulty: FaultRig
    let before: string
    const web = aService({ type: 'NodePort', families: [4, 6] })
    // As many endpoints as the others have: rules that services share go when many of them are unused.
    const change = [web, ...([4, 6] as const).map((family) => aSlice(web, ['localC', 'remoteB'], { family }))]

    beforeAll(async () => {
      faulty = await FaultRig.open(mode, sampleObjects)
      await faulty.start()
      await faulty.rig.settled()
      before = await faulty.steadyRules()
    })
    afterAll(() => faulty[Symbol.asyncDispose]())
    // One that ended has failed one test, and not those that follow.
    beforeEach(async () => {
      faulty.shim.heal()
      faulty.rig.cluster.remove(...change)
      if (faulty.proxy.ended !== undefined) await faulty.start()
    })

    const answers = async () => {
      const to = { address: web.spec.clusterIP, port: 80 }
      const { kind } = await tcpProbe(faulty.rig.network.sources.localPod, to, { timeoutMs: 100 * patience() })
      return kind
    }

    /** Something changes in the cluster, and on the machine, while calls fail; then they do not any more. */
    async function disturb(
      fault: 'of the kernel' | 'of the process',
      fail: () => void,
      isMet: () => boolean,
      heal: () => void,
    ): Promise<void> {
      const { cluster, network } = faulty.rig
      fail()
      try {
        cluster.put(...change)
        // Addresses come and go, and another program uses nftables.
        network.node.ip(['addr replace 10.3.0.77/24 dev eth0'])
        network.node.run('nft', ['-f', '-'], 'add table inet other\ndelete table inet other\n')
        await eventually('the fault is met', () => (isMet() ? undefined : 'not yet'), { withinMs: 2000 })
        network.node.ip(['addr del 10.3.0.77/24 dev eth0'])
        // Whatever else hears of it meets the fault as well, and what is tried again at once.
        await sleep(200)
        faulty.expectAlive()
        // The kernel carries what it carried; a process without descriptors lets clients wait.
        if (mode.carriedBy === 'kernel' || fault === 'of the kernel') {
          expect((await tcpProbe(network.sources.localPod, steadyTargets.tcp)).kind).toBe('answered')
        }
      } finally {
        heal()
      }
      await eventually(
        'the change is there',
        async () => {
          const kind = await answers()
          return kind === 'answered' ? undefined : kind
        },
        {
          withinMs: 15_000,
        },
      ).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${faulty.proxy.logTail(15)}`, { cause: error })
      })
      cluster.remove(...change)
      await faulty.rulesBecome(before, 'the rules are what they were')
      await eventually('it is healthy', async () => {
        const answer = await faulty.proxy.health()
        return answer?.status === 200 ? undefined : `${answer?.status}`
      })
      faulty.expectAlive()
    }

    test.for(faultsOf(mode).filter(([call]) => only.test(call)))('%s fails with %s', async ([call, errno]) => {
      const { shim } = faulty
      await disturb(
        'of the kernel',
        () => shim.fail(call, errno),
        () => shim.hits(call) > 0,
        () => shim.heal(),
      )
    })

    test('no file descriptor is left', async () => {
      let began = 0
      const limit = /Max open files\s+(\d+)\s+(\d+)/.exec(proc(faulty.proxy.pid, 'limits'))
      await disturb(
        'of the process',
        () => {
          prlimit(faulty.proxy.pid, `3:${limit?.[2]}`)
          began = performance.now()
        },
        // Which modes need another descriptor for the change is their own affair.
        () => performance.now() > began + 400,
        () => {
          if (faulty.proxy.ended === undefined) prlimit(faulty.proxy.pid, `${limit?.[1]}:${limit?.[2]}`)
        },
      )
    })

    test('/healthz says when changes are not followed, and when they are again', async () => {
      const { cluster } = faulty.rig
      const status = async () => (await faulty.proxy.health())?.status
      const call = mode.runsPrograms ? 'fork' : 'netlink send'
      faulty.shim.fail(call, 'ENOMEM')
      try {
        cluster.put(...change)
        await eventually(
          '/healthz is 503',
          async () => {
            if (faulty.proxy.ended !== undefined) return { fatal: `it ended:\n${faulty.proxy.logTail(10)}` }
            return (await status()) === 503 ? undefined : 'it is not'
          },
          {
            withinMs: 20_000,
          },
        )
        faulty.expectAlive()
        expect(faulty.proxy.log()).toContain('Sync failed')
      } finally {
        faulty.shim.heal()
      }
      await eventually('/healthz is 200', async () => ((await status()) === 200 ? undefined : 'it is not'), {
        withinMs: 15_000,
      })
      expect(await answers()).toBe('answered')
      cluster.remove(...change)
      await faulty.rulesBecome(before, 'the rules are what they were')
    })
  })
}

function faultsOf({ runsPrograms, label }: FaultyMode): [FaultyCall, Errno][] {
  const netlink = (['netlink send', 'netlink receive'] as const).flatMap((call) =>
    (['ENOBUFS', 'ENOMEM', 'EAGAIN'] as const).map((errno): [FaultyCall, Errno] => [call, errno]),
  )
  const sockets = (['EMFILE', 'ENOBUFS', 'ENOMEM'] as const).map((errno): [FaultyCall, Errno] => [
    'netlink socket',
    errno,
  ])
  const forks = (['EAGAIN', 'ENOMEM'] as const).map((errno): [FaultyCall, Errno] => ['fork', errno])
  const replace: [FaultyCall, Errno][] = label === 'iptables-legacy' ? [['xtables replace', 'ENOMEM']] : []
  return [...netlink, ...sockets, ...(runsPrograms ? forks : []), ...replace]
}

function prlimit(pid: number, nofile: string): void {
  const { status, stderr } = spawnSync('prlimit', [`--pid=${pid}`, `--nofile=${nofile}`], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`Cannot set a limit: ${stderr}`)
}

function proc(pid: number, name: string): string {
  return readFileSync(`/proc/${pid}/${name}`, 'utf8')
}
