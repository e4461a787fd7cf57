// The kind of archive that a kernel unpacks as its first root: cpio, "newc".

/** `entries`: as those of formatTar(), with every folder named. */
export function formatCpio(entries) {
  const all = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  // The kernel opens this for its first process before anything can be mounted.
  const parts = [
    ...all.flatMap(([path, entry]) => formatEntry(path, entry)),
    ...formatDevice('dev/console', 5, 1),
    ...formatHeader('TRAILER!!!', {}),
  ]
  return Buffer.concat(parts)
}

function formatEntry(path, { kind, mode = 0o755, content = Buffer.alloc(0), target }) {
  if (path === 'dev/console') return []
  const type = { folder: 0o040000, file: 0o100000, link: 0o120000 }[kind]
  const data = kind === 'link' ? Buffer.from(target) : content
  return [...formatHeader(path, { mode: type | mode, size: data.length }), data, pad(data.length)]
}

function formatDevice(path, major, minor) {
  return formatHeader(path, { mode: 0o020600, major, minor })
}

function formatHeader(path, { mode = 0, size = 0, major = 0, minor = 0 }) {
  const name = Buffer.from(`${path}\0`)
  const fields = [0, mode, 0, 0, 1, 0, size, 0, 0, major, minor, name.length, 0]
  const header = Buffer.from(`070701${fields.map((each) => each.toString(16).padStart(8, '0')).join('')}`)
  return [header, name, pad(header.length + name.length)]
}

function pad(length) {
  return Buffer.alloc((4 - (length % 4)) % 4)
}
