// What the proxy of a node says of itself, or that it does not.

import { modeNamed } from '../../modes/all.ts'
import { ControlClient, NoProxyError } from '../../serve/control/client.ts'
import type { StateAnswer } from '../../serve/control/state.ts'
import { knownFromState } from '../explain/from-state.ts'
import { formatUnheard } from '../proxy-status.ts'
import type { Known } from '../explain/known.ts'
import type { NodeExamination, ProxyFact } from './facts.ts'

/** A proxy that has not answered by then is busy with something else, or hangs. */
const PATIENCE_MS = 5000

/** `socket`: its control socket; '' is that of this network namespace. */
export async function readProxy(
  socket: string,
): Promise<{ proxy: ProxyFact; known: Known | undefined; drift: NodeExamination['drift'] }> {
  const client = new ControlClient(socket)
  try {
    const state = await client.ask<StateAnswer>('state', { timeoutMs: PATIENCE_MS, query: { only: 'objects' } })
    const unheard = (state.unheard ?? []).map((each) => formatUnheard(each, state.source))
    const proxy = { kind: 'answers', mode: state.mode.name, node: state.nodeName, unheard } as const
    const drift = state.families.map(({ family, drift: ofFamily }) => ({ family, ...ofFamily }))
    return { proxy, known: knownFromState(state, modeNamed), drift }
  } catch (error) {
    if (!(error instanceof NoProxyError)) throw error
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException
    // Without permission, the question is not the proxy's.
    if (code === 'EACCES' || code === 'EPERM') throw error
    const kind = code === 'ENOENT' || code === 'ECONNREFUSED' ? 'none' : 'silent'
    return { proxy: { kind, error: error.message }, known: undefined, drift: [] }
  } finally {
    client.close()
  }
}
