// Where the program of a thread is. Threads run compiled code only.

/** Beside the file that starts it, in a build and in a release, which is of .cjs files; the sources, as in tests, take it from the build. */
export type ThreadProgram = Readonly<Record<'ts' | 'js' | 'cjs', string>>

/** `from` is the import.meta.url of that file. */
export function threadProgram(from: string, program: ThreadProgram): URL {
  const { kind } = /(?<kind>ts|cjs|js)$/.exec(from)!.groups!
  return new URL(program[kind as keyof ThreadProgram], from)
}
