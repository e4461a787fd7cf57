// The first file of a release, as kube-proxy.cjs. It loads the others, and spares V8 compiling them where what V8 makes of them
// lies beside them: compile.cjs writes that when a release is built. The program is the same without it, and starts later.

const { closeSync, fstatSync, openSync, readFileSync, readSync } = require('node:fs')
const { basename, join } = require('node:path')
const { Script } = require('node:vm')
const { crc32 } = require('node:zlib')

const suffix = `.${process.version}-${process.arch}.bin`

/** The checksums of what V8 made, of the part that it made it from, and of Node; and zeros, as V8 wants its data to begin at 16. */
const HEADER = 16

/** What others may do with a file: write it. */
const OTHERS_WRITE = 0o022

const parts = new Map()
let node

/** The `require` of all parts. */
function load(id) {
  if (!id.endsWith('.cjs')) return require(id)
  const known = parts.get(id)
  if (known !== undefined) return known.exports
  const part = { exports: {} }
  parts.set(id, part)
  const file = join(__dirname, id)
  const script = scriptOf(file, readPart(file))
  script.runInThisContext()(part.exports, load, part, file, __dirname)
  return part.exports
}

/** All on its first line, so that the lines of the part stay as they are. */
function scriptOf(file, { bytes, compiled }) {
  const wrapped = `(function (exports, require, module, __filename, __dirname) {${bytes.toString('utf8')}\n})`
  // A string of its own, not a piece of the path: what V8 makes of it is then the same wherever the release is built.
  const filename = Buffer.from(basename(file)).toString()
  return new Script(wrapped, { filename, cachedData: compiled })
}

function readPart(file) {
  const fd = openSync(file)
  try {
    const bytes = readFileSync(fd)
    return { bytes, compiled: readCompiled(file + suffix, bytes, fstatSync(fd)) }
  } finally {
    closeSync(fd)
  }
}

/**
 * What V8 made of these bytes; undefined where there is nothing, or where it may be of another user, another program or another
 * Node. V8 itself refuses what another version of it made, or the same one with other flags, but believes the rest.
 */
function readCompiled(file, bytes, { uid, mode }) {
  let fd
  try {
    fd = openSync(file)
    const status = fstatSync(fd)
    if (status.uid !== uid || (status.mode & OTHERS_WRITE & ~mode) !== 0) return undefined
    const content = readFileSync(fd)
    const compiled = content.subarray(HEADER)
    return content.subarray(0, HEADER).equals(headerOf(bytes, compiled)) ? compiled : undefined
  } catch {
    return undefined
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

function headerOf(bytes, compiled) {
  const header = Buffer.alloc(HEADER)
  header.writeUInt32LE(crc32(compiled), 0)
  header.writeUInt32LE(crc32(bytes), 4)
  header.writeUInt32LE((node ??= checksumOfNode()), 8)
  return header
}

/** The first page of the executable has its build ID, and the sizes of all that it loads: two builds of one version differ. */
function checksumOfNode() {
  const page = Buffer.alloc(4096)
  const fd = openSync(process.execPath)
  try {
    readSync(fd, page)
  } finally {
    closeSync(fd)
  }
  return crc32(page)
}

if (require.main === module) load('./program.cjs')
else module.exports = { headerOf, scriptOf, suffix }
