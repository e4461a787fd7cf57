// Where the control socket is.
//
// A machine may have several network namespaces with a proxy each - the nodes of a sandbox - and one /run for all of them. The
// name of the socket has the number of the namespace: a command that runs on a node, or in its namespace, finds the proxy of
// that node and no other.

import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

export const CONTROL_FOLDER = '/run/kube-proxy-ts'
/** What `--control-socket` says to turn it off. */
export const NO_SOCKET = 'none'
/** For commands: the socket, where no flag names one. */
export const SOCKET_VARIABLE = 'KUBE_PROXY_CONTROL_SOCKET'

/** A unix socket's address has 108 bytes, with a zero at the end. */
export const LONGEST_PATH = 107

/** The socket of the proxy in this network namespace. */
export function defaultSocket(folder: string = CONTROL_FOLDER): string {
  // Of this thread: a test may have moved it.
  return join(folder, `net-${statSync('/proc/thread-self/ns/net').ino}.sock`)
}

/** Where the proxy listens by `--control-socket`; undefined when that turns it off. */
export function listenPath(flag: string): string | undefined {
  if (flag === NO_SOCKET) return undefined
  return flag === '' ? defaultSocket() : flag
}

/** Where a command asks: by its flag, by the environment, or in this network namespace. */
export function askPath(flag: string, env: NodeJS.ProcessEnv = process.env): string {
  return flag || env[SOCKET_VARIABLE] || defaultSocket()
}

/** The sockets of proxies in any network namespace of this machine, alive or not. */
export function listSockets(folder: string = CONTROL_FOLDER): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /^net-\d+\.sock$/.test(name))
      .sort()
      .map((name) => join(folder, name))
  } catch {
    return []
  }
}
