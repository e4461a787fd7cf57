// The places of the sources at which a bundled program logs: a file that the build writes beside it. A checkout has none,
// and needs none: there each file has the name of its source.

import { readFileSync } from 'node:fs'
import type { Caller } from '../lib/log-caller.ts'

/** By the names of bundled files: for each source in it, its name and then pairs of lines, of the bundle and of the source. */
export type LogSources = Readonly<Record<string, readonly (readonly [string, ...number[]])[]>>

/** From places of the bundle to those of the sources. The file is read when the first line is logged. */
export function sourceFinder(file: URL = new URL('log-sources.json', import.meta.url)): (caller: Caller) => Caller {
  let known: ReadonlyMap<string, Caller> | undefined
  return (caller) => (known ??= readSources(file)).get(`${caller.file}:${caller.line}`) ?? caller
}

/** Anything that is wrong with the file means that places are those of the bundle: it is no reason not to log. */
function readSources(file: URL): ReadonlyMap<string, Caller> {
  try {
    return indexSources(JSON.parse(readFileSync(file, 'utf8')) as LogSources)
  } catch {
    return new Map()
  }
}

function indexSources(sources: LogSources): ReadonlyMap<string, Caller> {
  const known = new Map<string, Caller>()
  for (const [bundled, places] of Object.entries(sources)) {
    for (const [path, ...lines] of places) {
      const name = path.slice(path.lastIndexOf('/') + 1)
      for (let i = 0; i + 1 < lines.length; i += 2) {
        known.set(`${bundled}:${lines[i]!}`, { path, file: name, line: lines[i + 1]! })
      }
    }
  }
  return known
}
