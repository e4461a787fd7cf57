import { loadConfiguration } from '../config/load.ts'
import type { LoadOptions, LoadResult } from '../config/load.ts'
import type { ConfigurationChange, LoadedConfiguration } from '../config/types.ts'
import { watchFile } from '../config/watch-file.ts'
import { messageOf } from '../lib/errors.ts'

export interface ConfigurationFile {
  readonly path: string
  /** What the file held when it was loaded. */
  readonly text: string
  readonly loaded: LoadedConfiguration
  readonly options: LoadOptions
  /** Called with every accepted change, before it is yielded. */
  readonly onAccepted: (result: LoadResult) => void
}

/** What becomes of a configuration file. A change that leaves the same configuration (a comment) is none. */
export async function* configurationChanges(
  file: ConfigurationFile,
  signal: AbortSignal,
): AsyncGenerator<ConfigurationChange> {
  let current = file.loaded
  for await (const content of watchFile(file.path, file.text, { signal })) {
    if ('error' in content) {
      yield { kind: 'invalid', error: unreadable(file.path, content.error) }
      continue
    }
    try {
      const result = loadConfiguration(content.text, file.options)
      // Two megabytes that most proxies never need.
      const { isDeepStrictEqual } = process.getBuiltinModule('node:util')
      if (isDeepStrictEqual(result.loaded, current)) continue
      current = result.loaded
      file.onAccepted(result)
    } catch (error) {
      yield { kind: 'invalid', error: error instanceof Error ? error : new Error(messageOf(error)) }
      continue
    }
    yield { kind: 'changed', loaded: current }
  }
}

/** An error for a file that cannot be read. */
export function unreadable(file: string, error: unknown): Error {
  return new Error(`Cannot read the configuration file ${file}: ${messageOf(error)}`, { cause: error })
}
