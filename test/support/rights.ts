// The program with few capabilities, and what becomes of it.

import type { ModeName } from '../conformance/modes.ts'
import { proxyCommand, proxyFlags, ProxyProcess } from './proxy-process.ts'
import type { Rig } from './rig.ts'

/** The command before that of a program which gives it no more than these: `CAP_NET_ADMIN`. */
export function limitedTo(capabilities: readonly string[]): string[] {
  const kept = capabilities.map((name) => `+${name.replace('CAP_', '').toLowerCase()}`)
  return ['setpriv', `--bounding-set=${['-all', ...kept].join(',')}`, '--no-new-privs']
}

/** `it serves`, or how it ended and with which error. */
export async function outcomeOfStart(rig: Rig, mode: ModeName, capabilities: readonly string[]): Promise<string> {
  const { kubeconfig } = rig.cluster
  const netns = rig.network.node
  const args = [...proxyFlags({ netns, mode, kubeconfig }), '--strict-proxy-mode']
  const command = [...limitedTo(capabilities), ...proxyCommand()]
  await using proxy = new ProxyProcess(netns, args, { command })
  const ended = proxy.exited.then((code) => `it ends with ${code}: ${proxy.logTail(5)}`)
  const ready = proxy.ready().then(() => 'it serves')
  const outcome = await Promise.race([ready.catch(() => ended), ended])
  if (outcome !== 'it serves') return outcome.replaceAll('\n', ' ')
  await proxy.stop('SIGTERM')
  const programs = /"Using iptables" programs="(\S+)/.exec(proxy.log())?.[1]
  return programs === undefined ? outcome : `${outcome} by ${programs}`
}
