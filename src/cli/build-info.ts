// What this program was built from: a file that the build writes beside it. From the sources there is none.

import { readFileSync } from 'node:fs'

export interface BuildOrigin {
  /** The whole hash; empty where it is not known. */
  readonly commit: string
  /** `dirty`: the files were not those of the commit alone. */
  readonly treeState: 'clean' | 'dirty' | ''
  /** When the commit was made, not when it was built: two builds of one commit are the same. */
  readonly date: string
}

const unknown: BuildOrigin = { commit: '', treeState: '', date: '' }

export const buildOrigin: BuildOrigin = readBuildOrigin(new URL('build.json', import.meta.url))

/** Anything that is wrong with the file means that the origin is not known: it is no reason not to start. */
export function readBuildOrigin(file: URL): BuildOrigin {
  try {
    return parseBuildOrigin(JSON.parse(readFileSync(file, 'utf8')))
  } catch {
    return unknown
  }
}

function parseBuildOrigin(value: unknown): BuildOrigin {
  const { commit, treeState, date } = value as Record<string, unknown>
  if (typeof commit !== 'string' || !/^[0-9a-f]{40,64}$/.test(commit)) return unknown
  const known = treeState === 'clean' || treeState === 'dirty'
  return { commit, treeState: known ? treeState : '', date: typeof date === 'string' ? date : '' }
}

/** What a version says of it behind its plus: `.g75e3c3b` or `.g75e3c3b.dirty`; nothing where the origin is not known. */
export function formatOrigin({ commit, treeState }: BuildOrigin): string {
  if (commit === '') return ''
  return `.g${commit.slice(0, 12)}${treeState === 'dirty' ? '.dirty' : ''}`
}
