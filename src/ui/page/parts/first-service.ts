import type { ServiceInfo } from '../../protocol.ts'

/** The service that a newcomer looks at first: one that leads somewhere, rather than one without endpoints or the cluster's own. */
export function firstService(services: readonly ServiceInfo[]): ServiceInfo | undefined {
  const own = services.filter(({ system }) => !system)
  return own.find(leadsSomewhere) ?? own[0] ?? services[0]
}

function leadsSomewhere({ clusterIPs, ports }: ServiceInfo): boolean {
  const [ip] = clusterIPs
  return ip !== undefined && ip !== 'None' && ports.some(({ backends }) => backends.length > 0)
}
