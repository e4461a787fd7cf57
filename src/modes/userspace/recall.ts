// Reads affinity entries from the workers, which have them.

import type { RememberedBackend, RememberedQuestion } from '../contract.ts'
import type { DataPlane } from '../../data-path/data-plane.ts'
import type { Listeners } from '../../data-path/listeners.ts'
import { servedName } from './served-name.ts'

/** Those that the client may get again, the one with the most time left first. */
export async function recallBackends(
  plane: Pick<DataPlane, 'findAffinity'>,
  listeners: Pick<Listeners, 'get'>,
  { view, list, client }: RememberedQuestion,
): Promise<readonly RememberedBackend[]> {
  const served = listeners.get(servedName(view, list))
  if (served === undefined) return []
  const recalled = await plane.findAffinity(served.pool, client)
  return recalled
    .map(({ backend, leftMs }) => {
      const [ip = '', port = ''] = backend.split(' ')
      return { ip, port: Number(port), leftMs }
    })
    .sort((a, b) => b.leftMs - a.leftMs)
}
