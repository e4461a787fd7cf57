// Settings of the kernel, all of which are files.

import { readFileSync, writeFileSync } from 'node:fs'

/** Both throw when the file is missing or not permitted. */
export interface SettingFiles {
  read(path: string): string
  write(path: string, value: string): void
}

/** The files of this machine. */
export const settingFiles: SettingFiles = {
  read: (path) => readFileSync(path, 'utf8'),
  write: (path, value) => writeFileSync(path, value),
}

/** The number that a file holds; undefined when it cannot be read. */
export function readNumber(files: SettingFiles, path: string): number | undefined {
  try {
    return Number(files.read(path).trim())
  } catch {
    return undefined
  }
}
