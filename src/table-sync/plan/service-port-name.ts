// The name of what a service port has for itself. Apart from the other names, which are known before anything is hashed.

import { hashedName } from '../../lib/hash.ts'
import type { ServicePortView } from '../../model/types.ts'

/** As kube-proxy names the chains of a service port: `ULMVA6XW-ns1/svc1/tcp/p80`. */
export function servicePortBaseName(port: ServicePortView): string {
  return hashedName(`${port.namespace}/${port.service}/${port.protocol.toLowerCase()}/${port.portName}`)
}
