import type { LoadRequest } from '../../../../src/ui/protocol.ts'
import type { SandboxObjects } from './sandbox-objects.ts'

const PER_SECOND = 10

/** To the first service that a client can dial over TCP, and that leads somewhere; undefined: there is none yet. */
export function gentleLoad({ services, slices }: Pick<SandboxObjects, 'services' | 'slices'>): LoadRequest | undefined {
  const led = new Set(
    slices
      .filter(({ endpoints }) => endpoints.some(({ ready }) => ready))
      .map(({ namespace, serviceName }) => `${namespace}/${serviceName}`),
  )
  const names = services
    .filter(({ namespace, name }) => namespace !== 'kube-system' && !(namespace === 'default' && name === 'kubernetes'))
    .filter(({ clusterIPs: [ip], ports }) => ip !== undefined && ip !== 'None' && ports[0]?.protocol === 'TCP')
    .map(({ namespace, name }) => `${namespace}/${name}`)
    .sort()
  const to = names.find((name) => led.has(name))
  return to === undefined ? undefined : { from: 'outside', to, perSecond: PER_SECOND }
}
