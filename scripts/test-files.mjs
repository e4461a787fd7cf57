import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The files of tests below the folders that have some, as paths from the root. */
export function findTestFiles(root) {
  return ['src', 'packages', 'test', 'scripts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => /\.test\.m?ts$|\.test\.mjs$/.test(name))
      .map((name) => join(folder, name)),
  )
}
