// Which frontends a table serves: what was read back may be of a time when other services existed.

import { formatIp, asBytes } from '../../../lib/ip.ts'
import type { FrontendAddress } from '../../../model/types.ts'
import { protocolField, splitFields, decodePort } from '../../../nftables/fields.ts'
import type { NftSet, Table } from '../../../nftables/types.ts'
import { SETS } from './names.ts'

const SERVED = [SETS.services, SETS.nodePorts] as const
const UDP = protocolField('UDP')

/** Only those of UDP: flows of other protocols are not cleaned up, and a table may have very many of them. */
export function* servedUdpFrontends(table: Table): Generator<FrontendAddress> {
  for (const name of SERVED) {
    const set = table.sets.get(name)
    for (const { key } of table.elements.get(name)?.values() ?? []) {
      const frontend = set && decodeUdpFrontend(set, key)
      if (frontend !== undefined) yield frontend
    }
  }
}

function decodeUdpFrontend({ key: types }: NftSet, key: string): FrontendAddress | undefined {
  const fields = splitFields(types, asBytes(key))
  const [protocol = '', port = ''] = fields.slice(-2)
  if (protocol !== UDP) return undefined
  const [address] = fields.length > 2 ? fields : []
  return {
    address: address === undefined ? undefined : formatIp(address),
    protocol: 'UDP',
    port: decodePort(port),
  }
}
