import { BackendList } from '../../src/model/backend-list.ts'
import type { Frontend, Route, ServicePortView } from '../../src/model/types.ts'

/** The port on which the backends listen. */
export const backendPort = 8080

/** A service port with nothing but a cluster IP, port 80/TCP. */
export function aClusterIpView(address: string, backendIps: readonly string[]): ServicePortView {
  const backends = BackendList.of(backendIps.map((ip) => ({ ip, port: backendPort, isLocal: false })))
  const route: Route = { verdict: { kind: 'to', policy: 'Cluster', backends }, masquerade: false }
  const frontend: Frontend = {
    kind: 'clusterIP',
    address,
    protocol: 'TCP',
    port: 80,
    fromPods: route,
    fromNode: route,
    fromOthers: route,
    isSplit: false,
    allowedSources: undefined,
    affinitySeconds: undefined,
  }
  const service = `at-${address.replaceAll(/[.:]/g, '-')}`
  return {
    name: `ns/${service}`,
    namespace: 'ns',
    service,
    portName: '',
    protocol: 'TCP',
    frontends: [frontend],
    lists: { Cluster: backends },
    backends,
    serving: [],
  }
}
