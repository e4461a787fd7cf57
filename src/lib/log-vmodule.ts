import type { Caller } from './log-caller.ts'

/** A pattern for names of files (without folder and extension), and the verbosity of those that match. */
export interface VmodulePattern {
  readonly filePattern: string
  readonly verbosity: number
}

/** The verbosity of a file by the first pattern that matches its name, or undefined. Files are remembered. */
export function verbosityByFile(patterns: readonly VmodulePattern[]): (caller: Caller) => number | undefined {
  const compiled = patterns.map(({ filePattern, verbosity }) => ({ regexp: globToRegExp(filePattern), verbosity }))
  const known = new Map<string, number | undefined>()
  return ({ file }) => {
    if (!known.has(file)) {
      const name = file.replace(/\.[^.]*$/, '')
      known.set(file, compiled.find(({ regexp }) => regexp.test(name))?.verbosity)
    }
    return known.get(file)
  }
}

/** `*`, `?` and `[a-z]`, as Go's filepath.Match. */
function globToRegExp(glob: string): RegExp {
  const source = glob.replace(/\[\^?[^\]]+\]|[\s\S]/g, (part) => {
    if (part === '*') return '[^/]*'
    if (part === '?') return '[^/]'
    if (part.length > 1) return part.replaceAll('\\', '\\\\')
    return part.replace(/[\\^$.*+?()[\]{}|]/, '\\$&')
  })
  try {
    return new RegExp(`^${source}$`)
  } catch {
    return /^\b$/ // A malformed range matches nothing, as in Go.
  }
}
