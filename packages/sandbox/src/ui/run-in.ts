import { spawn } from 'node:child_process'
import type { NetworkNamespace } from '../netns/network-namespace.ts'

const PROGRAM_MS = 10_000

/** Runs a program in a namespace to its end. Rejects with what it complained about. */
export function runIn(netns: NetworkNamespace, [program = '', ...args]: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = netns.enter(() =>
      spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: PROGRAM_MS, detached: true }),
    )
    let complaint = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (complaint += text))
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(new Error(`Cannot run ${program}: ${error.code === 'ENOENT' ? 'it is not installed' : error.message}`)),
    )
    child.once('close', (code) => {
      if (code === 0) resolve()
      else reject(new Error(`${program} failed: ${complaint.trim().split('\n')[0] ?? `status ${code}`}`))
    })
  })
}
