// The processes called kube-proxy in this network namespace.

import { readdirSync, readlinkSync } from 'node:fs'
import { readText } from '../read-text.ts'
import { isProxy } from './is-proxy.ts'

export interface ProxyProcess {
  readonly pid: number
  readonly command: string
}

/** Only root may know the network namespace of another's process. */
export function findProxies(): ProxyProcess[] {
  const network = readLink('/proc/self/ns/net')
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return []
    const command = readText(`/proc/${name}/cmdline`)
      .split('\0')
      .filter((part) => part !== '')
    if (!isProxy(command)) return []
    if (readLink(`/proc/${name}/ns/net`) !== network) return []
    return [{ pid: Number(name), command: command.join(' ').slice(0, 200) }]
  })
}

function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}
