// Which sandbox a command means.

import { instancesFolder, listInstances, type InstanceFolder } from '../sandbox/instance/instance-folder.ts'

/** The running sandbox of that name, or the only one there is. Throws an Error that says what to do. */
export function findInstance(name: string | undefined): InstanceFolder {
  const running = runningInstances()
  const named = name === undefined ? running : running.filter((folder) => folder.name === name)
  const [only, ...others] = named
  if (only !== undefined && others.length === 0) return only
  if (only !== undefined) {
    const names = running.map((folder) => folder.name).join(', ')
    throw new Error(`Cannot tell which sandbox is meant: ${names} are running; say --name NAME`)
  }
  const which = name === undefined ? 'a sandbox' : `sandbox ${name}`
  const others2 = running.length === 0 ? 'none is running' : `only ${running.map((folder) => folder.name).join(', ')}`
  throw new Error(`Cannot find ${which}: ${others2}; start one with kube-proxy sandbox`)
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
