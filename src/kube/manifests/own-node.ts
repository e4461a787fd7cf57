// The Node of a machine without a cluster: its name and the addresses that it sends from.

import { createSocket } from 'node:dgram'
import { networkInterfaces } from 'node:os'
import type { Node } from '../types.ts'

/** Addresses for documentation (RFC 5737, RFC 3849), for a route lookup: nothing is sent to them. */
const SOMEWHERE = [
  ['udp4', '192.0.2.1', 'IPv4'],
  ['udp6', '2001:db8::1', 'IPv6'],
] as const

export async function readOwnNode(name: string): Promise<Node> {
  const found = await Promise.all(
    SOMEWHERE.map(async ([type, somewhere, family]) => (await sourceAddress(type, somewhere)) ?? firstAddress(family)),
  )
  const addresses = found.flatMap((address) => (address === undefined ? [] : [{ type: 'InternalIP', address }]))
  return { name, zone: undefined, addresses, podCIDRs: [], deleting: false, taints: [] }
}

/** The source address of packets to somewhere, by the routes of this machine. */
function sourceAddress(type: 'udp4' | 'udp6', somewhere: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket(type)
    const finish = (address: string | undefined) => {
      socket.close()
      resolve(address)
    }
    socket.once('error', () => finish(undefined))
    // Without a route, Node calls the callback with an error, and emits none.
    const onConnected = (error?: Error) => finish(error === undefined ? socket.address().address : undefined)
    socket.connect(9, somewhere, onConnected)
  })
}

function firstAddress(family: 'IPv4' | 'IPv6'): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return all.find((one) => one.family === family && !one.internal && !one.address.startsWith('fe80:'))?.address
}
