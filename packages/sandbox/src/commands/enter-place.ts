// How a process goes into a pod, onto a node or the machine, before it starts a program there.

import { existsSync } from 'node:fs'
import { enterNetwork } from '../../../../src/system/netns.ts'
import { bindOwnFiles, setOwnHostname } from '../../../../src/system/process.ts'
import type { Place } from '../instance/control.ts'

/** Moves this thread, and what it starts from then on, to the network of a place, with its host name and its files. */
export function enterPlace({ netns, hostname, files }: Pick<Place, 'netns' | 'hostname' | 'files'>): void {
  enterNetwork(netns)
  if (hostname !== undefined) setOwnHostname(hostname)
  // A file can only take the place of one that is there.
  const present = files.filter(({ target }) => existsSync(target))
  if (present.length > 0) bindOwnFiles(present)
  if (files.some((file) => file.target === '/etc/resolv.conf' && !present.includes(file))) {
    process.stderr.write('kube-proxy: no names of services here: this machine has no /etc/resolv.conf to replace\n')
  }
}
