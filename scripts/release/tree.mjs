// Folders as entries for an archive.

import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

/** Of Debian 12: these are links into usr. Packages still name the old places. */
const merged = ['bin', 'sbin', 'lib', 'lib64']

/** What a container has no use for. Licences stay, they are in usr/share/doc. */
const useless =
  /^usr\/share\/(?!doc\/[^/]+(?:\/copyright)?$|common-licenses)|\/gconv\/|^usr\/lib\/(systemd|init|tmpfiles\.d)\/|^usr\/sbin\/iptables-apply$|^etc\/(init\.d|default|update-motd\.d|issue|motd)/

/** The files of an unpacked Debian package, where they are in a system of today. */
export function debianEntries(folder) {
  const entries = new Map()
  for (const [path, entry] of folderEntries(folder, '')) {
    const place = merged.some((name) => path.startsWith(`${name}/`)) ? `usr/${path}` : path
    const isWanted = entry.kind !== 'folder' && !useless.test(place)
    // No bit that gives rights, whatever the package says.
    if (isWanted) entries.set(place, { ...entry, mode: entry.mode & 0o755 })
  }
  return entries
}

export function mergedLinks() {
  return new Map(merged.map((name) => [name, { kind: 'link', target: `usr/${name}` }]))
}

/** Everything in a folder, below `place`. */
export function folderEntries(folder, place) {
  const entries = new Map()
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const path = join(folder, name)
    const status = lstatSync(path)
    const mode = status.mode & 0o777
    entries.set(place === '' ? name : `${place}/${name}`, readEntry(path, status, mode))
  }
  return entries
}

function readEntry(path, status, mode) {
  if (status.isSymbolicLink()) return { kind: 'link', target: readlinkSync(path), mode: 0o777 }
  if (status.isDirectory()) return { kind: 'folder', mode: 0o755 }
  if (!status.isFile()) throw new Error(`Cannot archive ${path}: it is neither a file nor a folder nor a link`)
  // Programs can be run and files be read, whatever the umask of the builder.
  return { kind: 'file', mode: (mode & 0o100) === 0 ? 0o644 : 0o755, content: readFileSync(path) }
}

export function textEntry(text, mode = 0o644) {
  return { kind: 'file', mode, content: Buffer.from(text) }
}
