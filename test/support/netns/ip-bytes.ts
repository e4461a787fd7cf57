import { formatIp, parseIp } from '../../../src/lib/ip.ts'

/** The bytes of an address, in network order. */
export function ipBytes(text: string): Uint8Array {
  const bytes = parseIp(text)
  if (bytes === undefined) throw new Error(`Cannot use ${text}: not an IP address`)
  return Uint8Array.from(bytes, (byte) => byte.charCodeAt(0))
}

/** The text of an address given as bytes. */
export function ipText(bytes: Uint8Array): string {
  return formatIp(String.fromCharCode(...bytes))
}
