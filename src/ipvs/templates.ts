// What persistence remembers: the lines of /proc/net/ip_vs_conn without a port of the client.

import { formatIp, bytesOf } from '../lib/ip.ts'
import type { Transport } from './types.ts'

export interface PersistenceEntry {
  readonly protocol: Transport
  readonly client: string
  readonly server: { readonly address: string; readonly port: number }
  readonly destination: { readonly address: string; readonly port: number }
  readonly secondsLeft: number
}

/** `TCP 0A060002 0000 0A0201B0 0050 0A01000C 1F90 NONE             59` */
const LINE = /^(TCP|UDP|SCTP) (\S+) 0000 (\S+) ([\dA-F]{4}) (\S+) ([\dA-F]{4}) \S+ +(\d+)/

/** All of the text; lines of connections are passed over. */
export function parseTemplates(text: string): PersistenceEntry[] {
  return text.split('\n').flatMap((line): PersistenceEntry[] => {
    const [, protocol, client, server, serverPort, destination, destinationPort, seconds] = LINE.exec(line) ?? []
    const addresses = [client, server, destination].map(parseAddress)
    if (protocol === undefined || addresses.some((address) => address === undefined)) return []
    const [clientIp, serverIp, destinationIp] = addresses as [string, string, string]
    return [
      {
        protocol: protocol as Transport,
        client: clientIp,
        server: { address: serverIp, port: Number.parseInt(serverPort!, 16) },
        destination: { address: destinationIp, port: Number.parseInt(destinationPort!, 16) },
        secondsLeft: Number(seconds),
      },
    ]
  })
}

/** Eight hex digits for IPv4, eight groups of four for IPv6. */
function parseAddress(text: string | undefined): string | undefined {
  const digits = (text ?? '').replaceAll(':', '')
  if (!/^([\da-f]{8}|[\da-f]{32})$/i.test(digits)) return undefined
  return formatIp(bytesOf(...Array.from(digits.match(/../g)!, (pair) => Number.parseInt(pair, 16))))
}
