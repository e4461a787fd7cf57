// Health ports that change hands, where no other process can have them for a moment: in a namespace of its own, and in a process
// that starts no other, which would inherit them until it runs its program.

import { expect, test } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import { silentLogger } from '../../src/lib/log.ts'
import { Rtnetlink } from '../../src/links/rtnetlink.ts'
import { ServiceHealth, type RefusedHealthPort } from '../../src/serve/service-health.ts'
import { unshareNetwork } from '../../src/system/netns.ts'
import { eventually } from '../support/eventually.ts'

test('two services swap their health ports, and none is refused', async () => {
  unshareNetwork()
  using links = new Rtnetlink()
  links.setUp('lo')
  const refused: RefusedHealthPort[] = []
  const clock = new ManualClock()
  const health = new ServiceHealth({
    family: 4,
    addresses: ['127.0.0.1'],
    proxyHealthy: () => true,
    onRefused: (port) => refused.push(port),
    clock,
    log: silentLogger,
  })
  try {
    const ports = [31_001, 31_002] as const
    for (let turn = 0; turn < 20; turn++) {
      const [first, second] = turn % 2 === 0 ? ['a', 'b'] : ['b', 'a']
      health.syncServices(new Map([[`n/${first}`, ports[0]], [`n/${second}`, ports[1]]])) // oxfmt-ignore
      // The clock stands still: what is refused is not tried again.
      await eventually('the ports are swapped', async () => {
        const names = await Promise.all(ports.map(nameBehind))
        return names[0] === first && names[1] === second ? undefined : names.join()
      })
    }
    expect(refused).toEqual([])
  } finally {
    await health.close()
  }
})

async function nameBehind(port: number): Promise<string> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' } })
    return ((await answer.json()) as { service: { name: string } }).service.name
  } catch {
    return 'no answer'
  }
}
