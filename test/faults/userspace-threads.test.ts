// What carries the connections of the userspace mode falters: epoll takes no more descriptors, threads die.

import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { aService, aSlice } from '../support/builders.ts'
import { eventually } from '../support/eventually.ts'
import { openTcp, tcpProbe, udpProbe } from '../support/netns/probe.ts'
import { dialFrom } from '../support/netns/streams.ts'
import { patience } from '../support/patience.ts'
import { FaultRig } from './fault-rig.ts'
import { userspace } from './modes.ts'
import { sampleObjects, steadyTargets } from './samples.ts'

let faulty: FaultRig
const pod = () => faulty.rig.network.sources.localPod

beforeAll(async () => {
  faulty = await FaultRig.open(userspace, sampleObjects)
  await faulty.start()
  await faulty.rig.settled()
})
afterAll(() => faulty[Symbol.asyncDispose]())
beforeEach(async () => {
  faulty.shim.heal()
  if (faulty.proxy.ended !== undefined) await faulty.start()
})

async function served(): Promise<void> {
  await eventually(
    'clients are served',
    async () => {
      if (faulty.proxy.ended !== undefined)
        return { fatal: `it ended (${faulty.proxy.ended}):\n${faulty.proxy.logTail(10)}` }
      const kinds = [await tcpProbe(pod(), steadyTargets.tcp), await udpProbe(pod(), steadyTargets.udp)]
      return kinds.every(({ kind }) => kind === 'answered') ? undefined : kinds.map(({ kind }) => kind).join(' ')
    },
    { withinMs: 8000 },
  )
}

test.for(['ENOSPC', 'ENOMEM'] as const)(
  'an epoll that refuses descriptors (%s) costs clients that come meanwhile, and no other',
  async (errno) => {
    await served()
    const { conversation } = await openTcp(pod(), steadyTargets.tcp)
    faulty.shim.fail('epoll_ctl', errno)
    const refused = Array.from({ length: 10 }, () => dialFrom(pod(), steadyTargets.tcp))
    await Promise.all(refused.map((socket) => Promise.race([closed(socket), sleep(500)])))
    await udpProbe(pod(), steadyTargets.udp, { timeoutMs: 200 })
    // A new service has listeners of its own, which cannot be watched either.
    const late = aService()
    faulty.rig.cluster.put(late, aSlice(late, ['localB']))
    await sleep(300)
    faulty.expectAlive()
    expect(faulty.shim.hits('epoll_ctl')).toBeGreaterThan(0)
    expect((await conversation.say('still there?')).kind).toBe('answered')
    expect((await faulty.proxy.health('/livez'))?.status).toBe(200)
    faulty.shim.heal()
    for (const socket of refused) socket.destroy()
    await served()
    expect((await conversation.say('still there?')).kind).toBe('answered')
    conversation.close()
    await eventually(
      'the service that came meanwhile is served',
      async () => {
        const { kind } = await tcpProbe(
          pod(),
          { address: late.spec.clusterIP, port: 80 },
          { timeoutMs: 100 * patience() },
        )
        return kind === 'answered' ? undefined : kind
      },
      { withinMs: 8000 },
    )
    faulty.rig.cluster.remove(late)
    await faulty.rig.settled()
  },
)

test('when a thread dies, the program serves on, or ends and says why; it never only looks well', async () => {
  await served()
  faulty.shim.fail('epoll_wait', 'EBADF', 1)
  // A client comes, and wakes a thread.
  await tcpProbe(pod(), steadyTargets.tcp, { timeoutMs: 300 })
  await eventually('a thread has died', () => (faulty.shim.hits('epoll_wait') > 0 ? undefined : 'not yet'))
  await sleep(500)
  const { ended } = faulty.proxy
  if (ended !== undefined) {
    expect(ended).toBe('1')
    expect(faulty.proxy.log()).toMatch(/a thread that carries connections failed/)
    await faulty.start()
  }
  await served()
  await faulty.rig.settled()
})

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()))
}
