// The content of a configuration file, each time it changes. kube-proxy does not notice a swapped ConfigMap; this program does.

import * as fs from 'node:fs'
import { watchPath } from '../lib/watch-path.ts'

export interface WatchFileOptions {
  readonly signal: AbortSignal
  readonly debounceMs?: number
  readonly pollMs?: number
}

/**
 * Who writes the file in place may take a while, and half a file may be valid: without its second half it would choose another mode.
 */
const QUIET_MS = 1000

/** What the file holds, or why it could not be read. */
export type FileContent = { readonly text: string } | { readonly error: Error }

/**
 * Yields the file's content each time it differs from the last one, which is `known` at first. If the file changes several times
 * before the reader asks, only the newest content counts.
 */
export async function* watchFile(file: string, known: string, options: WatchFileOptions): AsyncGenerator<FileContent> {
  const { signal, debounceMs: quietMs = QUIET_MS, pollMs = 10_000 } = options
  let last: string | undefined = known
  let lastError = ''
  for await (const _ of watchPath(file, { signal, quietMs, pollMs, keepsProcess: false })) {
    const content = await readContent(file)
    if ('text' in content) {
      if (content.text !== last) yield content
      last = content.text
      lastError = ''
    } else if (content.error.message !== lastError) {
      // Reported once. The next content is reported even if it is the last one again.
      yield content
      lastError = content.error.message
      last = undefined
    }
  }
}

async function readContent(file: string): Promise<FileContent> {
  try {
    return { text: await fs.promises.readFile(file, 'utf8') }
  } catch (error) {
    return { error: error as Error }
  }
}
