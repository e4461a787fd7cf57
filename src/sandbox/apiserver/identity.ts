// What makes a server the same one after a restart: its authority and its tokens. A kubeconfig stays good as long as they
// are kept.

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { KeyAndCertificate } from './certificate.ts'

export interface Identity {
  readonly authority: KeyAndCertificate
  readonly tokens: { readonly admin: string; readonly 'kube-proxy': string }
}

/** The identity kept in a folder, or a new one, which is kept there from then on. */
export async function readIdentity(folder: string | undefined, create: () => Identity): Promise<Identity> {
  if (folder === undefined) return create()
  const path = join(folder, 'identity.json')
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Identity
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const identity = create()
  await writeFile(path, JSON.stringify(identity), { mode: 0o600 })
  return identity
}
