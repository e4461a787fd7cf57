import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../../src/lib/errors.ts'
import { clearDead } from '../instance/claim.ts'
import { withInstancesLock, type InstanceFolder } from '../instance/instance-folder.ts'
import { findInstance, instanceFolders, runningInstances } from './sandbox-instances.ts'

const PATIENCE_MS = 10_000

/** Ends a sandbox and waits until it is gone. What dead ones left is cleared away in any case. */
export async function runSandboxDown({ name }: { readonly name: string | undefined }): Promise<number> {
  const cleared = instanceFolders().flatMap(clearIn)
  for (const dead of cleared) process.stdout.write(`Cleared what sandbox ${dead} had left.\n`)
  const isDone = cleared.length > 0 && (name === undefined ? runningInstances().length === 0 : cleared.includes(name))
  if (isDone) return 0
  const folder = findInstance(name)
  await end(folder)
  process.stdout.write(`Sandbox ${folder.name} is down.\n`)
  return 0
}

function clearIn(root: string): string[] {
  if (!existsSync(root)) return []
  try {
    return withInstancesLock(root, () => clearDead(root))
  } catch {
    // Another user's place: not ours to clear.
    return []
  }
}

async function end(folder: InstanceFolder): Promise<void> {
  const record = folder.read()
  if (record === undefined) return
  const signal = (which: NodeJS.Signals) => {
    try {
      process.kill(record.pid, which)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ESRCH') return
      throw new Error(`Cannot end sandbox ${folder.name}, process ${record.pid}: ${messageOf(error)}`, { cause: error })
    }
  }
  signal('SIGTERM')
  const deadline = performance.now() + PATIENCE_MS
  while (folder.isAlive(record) && performance.now() < deadline) await sleep(10)
  if (folder.isAlive(record)) signal('SIGKILL')
  while (folder.isAlive(record)) await sleep(10)
  folder.remove()
}
