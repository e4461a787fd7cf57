// Which sandbox a command means.

import { instancesFolder, listInstances, type InstanceFolder } from '../instance/instance-folder.ts'

/** The name of a sandbox that was given none, when it is the first: the commands that it prints leave it out. */
const DEFAULT_NAME = 'sandbox'

/**
 * The running sandbox of that name; without a name, the only one there is or the one of the default name. This user's come
 * before root's. Throws an Error that says what to do.
 */
export function findInstance(name: string | undefined): InstanceFolder {
  const running = runningInstances()
  const only = name === undefined && running.length === 1 ? running[0] : undefined
  const found = only ?? running.find((folder) => folder.name === (name ?? DEFAULT_NAME))
  if (found !== undefined) return found
  const names = running.map((folder) => folder.name).join(', ')
  if (name === undefined && running.length > 1) {
    throw new Error(`Cannot choose a sandbox: ${names} are running; say --name NAME`)
  }
  const which = name === undefined ? 'a sandbox' : `sandbox ${name}`
  const others = running.length === 0 ? 'none is running' : `only ${names}`
  throw new Error(`Cannot find ${which}: ${others}; start one with kube-proxy sandbox`)
}

export function runningInstances(): InstanceFolder[] {
  return instanceFolders()
    .flatMap(listInstances)
    .filter((folder) => folder.isAlive())
}

/** Where this user's sandboxes are, and root's. */
export function instanceFolders(): string[] {
  return [
    ...new Set([instancesFolder(), ...(process.env['KUBE_PROXY_SANDBOX_DIR'] ? [] : ['/run/kube-proxy-sandbox'])]),
  ]
}
