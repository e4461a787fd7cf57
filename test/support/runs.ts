/**
 * How many random cases a property is tried with: so many in scripts/test, and a part of them, FEWER_RUNS, in `npm run ok`,
 * which is asked often. The cases differ from run to run, so what is rare is found all the same, later.
 */
export function runs(count: number): { numRuns: number } {
  return { numRuns: Math.ceil(count / Number(process.env['FEWER_RUNS'] ?? 1)) }
}

/** All rows of a table, or in `npm run ok` each fourth of them, from the `which`-th on: for what is tried with each row four times. */
export function quarter<T>(rows: readonly T[], which: number): readonly T[] {
  return process.env['FEWER_RUNS'] === undefined ? rows : rows.filter((_, i) => i % 4 === which % 4)
}
