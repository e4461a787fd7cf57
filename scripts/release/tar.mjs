// Archives that are the same whenever and by whomever they are made: sorted, of root, from 1970.

const block = 512

/**
 * `entries`: paths without a leading slash, each `{ kind: 'folder' | 'file' | 'link', mode?, content?, target? }`. Folders that
 * are not named are made.
 */
export function formatTar(entries) {
  const all = new Map(entries)
  for (const path of entries.keys()) {
    for (let folder = parent(path); folder !== ''; folder = parent(folder)) {
      if (!all.has(folder)) all.set(folder, { kind: 'folder' })
      else if (all.get(folder).kind !== 'folder') throw new Error(`Cannot archive ${path}: ${folder} is no folder`)
    }
  }
  const sorted = [...all].sort(([a], [b]) => (a < b ? -1 : 1))
  const parts = sorted.flatMap(([path, entry]) => formatEntry(path, entry))
  return Buffer.concat([...parts, Buffer.alloc(2 * block)])
}

function parent(path) {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}

function formatEntry(path, { kind, mode, content = Buffer.alloc(0), target = '' }) {
  const name = kind === 'folder' ? `${path}/` : path
  const type = { folder: '5', file: '0', link: '2' }[kind]
  const permissions = mode ?? { folder: 0o755, file: 0o644, link: 0o777 }[kind]
  const records = []
  if (Buffer.byteLength(name) > 100) records.push(['path', name])
  if (Buffer.byteLength(target) > 100) records.push(['linkpath', target])
  const long = records.length === 0 ? [] : formatLong(records)
  const header = formatHeader({ name, mode: permissions, size: content.length, type, target })
  return [...long, header, ...padded(content)]
}

/** Names that a header has no room for come before it, as POSIX says. */
function formatLong(records) {
  const text = records.map(([key, value]) => formatRecord(key, value)).join('')
  const content = Buffer.from(text)
  return [
    formatHeader({ name: 'PaxHeader', mode: 0o644, size: content.length, type: 'x', target: '' }),
    ...padded(content),
  ]
}

/** A record begins with its own length, that of the number included. */
function formatRecord(key, value) {
  const rest = ` ${key}=${value}\n`
  let length = Buffer.byteLength(rest)
  while (String(length).length + Buffer.byteLength(rest) !== length) {
    length = String(length).length + Buffer.byteLength(rest)
  }
  return `${length}${rest}`
}

function formatHeader({ name, mode, size, type, target }) {
  const header = Buffer.alloc(block)
  header.write(name, 0, 100)
  header.write(octal(mode, 7), 100)
  header.write(octal(0, 7), 108)
  header.write(octal(0, 7), 116)
  header.write(octal(size, 11), 124)
  header.write(octal(0, 11), 136)
  header.write(' '.repeat(8), 148)
  header.write(type, 156)
  header.write(target, 157, 100)
  header.write('ustar\u000000', 257, 'latin1')
  const sum = header.reduce((a, b) => a + b, 0)
  header.write(`${octal(sum, 6)}\0 `, 148, 'latin1')
  return header
}

function octal(value, digits) {
  return value.toString(8).padStart(digits, '0')
}

function padded(content) {
  const rest = content.length % block
  return rest === 0 ? [content] : [content, Buffer.alloc(block - rest)]
}
