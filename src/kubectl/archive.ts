// A tar archive of files.

const BLOCK = 512

export interface ArchivedFile {
  /** Without a leading slash, of at most 100 bytes. */
  readonly path: string
  readonly content: Buffer
}

/** ustar, as every tar reads it. `seconds` is the time of all files. */
export function formatArchive(files: readonly ArchivedFile[], seconds: number): Buffer {
  const parts = files.flatMap(({ path, content }) => [
    headerOf(path, content.length, seconds),
    content,
    Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK),
  ])
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)])
}

function headerOf(path: string, size: number, seconds: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new Error(`Cannot archive ${path}: the name is longer than 100 bytes`)
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, at: number, length: number) =>
    header.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
  header.write(path, 0, 'utf8')
  octal(0o600, 100, 8)
  octal(0, 108, 8)
  octal(0, 116, 8)
  octal(size, 124, 12)
  octal(Math.floor(seconds), 136, 12)
  // While it is summed up, the sum itself counts as blanks.
  header.write('        0', 148, 'latin1')
  header.write('ustar', 257, 'latin1')
  header.write('00', 263, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return header
}
