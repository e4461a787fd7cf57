// Reads what is in the kernel of this machine for a family, in the form that packets can walk through, and what the proxy itself
// remembers where it carries connections.

import type { AffinityAnswer } from '../../serve/control/affinity.ts'
import { ask } from '../../serve/control/client.ts'
import type { Family } from '../../lib/ip.ts'
import { messageOf } from '../../lib/errors.ts'
import { modeNamed } from '../../modes/all.ts'
import type { KernelState, Prepared, ProxyAffinity } from './explain.ts'

export async function readKernelState(mode: string, family: Family): Promise<KernelState> {
  const nowMs = Date.now()
  const what = `the ${mode} mode for IPv${family}`
  try {
    const machine = await modeNamed(mode).load()
    const walkable = await machine.readWalkable?.({ family, now: () => nowMs })
    return walkable === undefined ? { kind: 'nothing', what } : { kind: 'walkable', walkable, when: 'read now', nowMs }
  } catch (error) {
    return { kind: 'unknown', what, error: messageOf(error) }
  }
}

/** The same for a question. `socket` is that of the proxy which was asked about the cluster. */
export async function readKernelFor(prepared: Prepared, socket: string): Promise<KernelState> {
  return withProxyAffinity(await readKernelState(prepared.known.mode.name, prepared.asked.family), prepared, socket)
}

/** With what the proxy remembers of the client, where it carries connections. */
export async function withProxyAffinity(state: KernelState, prepared: Prepared, socket: string): Promise<KernelState> {
  if (state.kind !== 'walkable' || state.walkable.endsAt !== 'the proxy') return state
  return { ...state, proxyAffinity: await readProxyAffinity(prepared, socket) }
}

/** Undefined: there are no affinity entries, or the proxy does not answer. */
async function readProxyAffinity({ asked, decision }: Prepared, socket: string): Promise<ProxyAffinity | undefined> {
  const { dialled, policy } = decision
  if (dialled?.frontend.affinitySeconds === undefined || policy === undefined) return undefined
  const query = { port: dialled.view.name, client: asked.connection.source, list: policy.list }
  try {
    const { remembered } = await ask<AffinityAnswer>('affinity', { socket, query })
    return remembered[0] ?? 'nothing'
  } catch {
    // One of an older version does not know the question.
    return undefined
  }
}
