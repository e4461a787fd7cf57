import type { ServiceInfo } from '../../protocol.ts'

/** The service that is shown first: one with endpoints, and no system service, if possible. */
export function firstService(services: readonly ServiceInfo[]): ServiceInfo | undefined {
  const own = services.filter(({ system }) => !system)
  return own.find(leadsSomewhere) ?? own[0] ?? services[0]
}

function leadsSomewhere({ clusterIPs, ports }: ServiceInfo): boolean {
  const [ip] = clusterIPs
  return ip !== undefined && ip !== 'None' && ports.some(({ backends }) => backends.length > 0)
}
