import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Import, importsOfProgram, root, sources } from './imports.ts'
import { type Folder, folders, rules } from './folders.ts'

const imports = importsOfProgram()
const folderOf = (path: string): Folder | undefined => folders.find(({ folder }) => isIn(path, folder))

/** Modules of Node that do no I/O. */
const PURE_MODULES = new Set(['node:buffer', 'node:path', 'node:crypto', 'node:util'])
/** Files without I/O in folders where every file may do it. */
const PURE_FILES = new Set(['src/system/socket-address.ts', 'src/kube/types.ts', 'src/modes/dry-run.ts'])

describe('every folder', () => {
  it('is in the table', () => {
    expect(sources().filter((file) => folderOf(file) === undefined)).toEqual([])
    const empty = folders.filter(({ folder }) => !sources().some((file) => isIn(file, folder)))
    expect(empty).toEqual([])
  })

  it('imports only what the table allows', () => {
    expect(imports.filter((each) => !isAllowed(each)).map(describeImport)).toEqual([])
  })

  it('needs all that the table allows it', () => {
    const unused = folders.flatMap(({ folder, imports: allowed, types = [] }) =>
      [...allowed, ...types]
        .filter((other) => !imports.some(({ from, to }) => isIn(from, folder) && isIn(to, other)))
        .map((other) => `${folder} -> ${other}`),
    )
    expect(unused).toEqual([])
  })

  it('imports only folders above it in the table', () => {
    const place = new Map(folders.map(({ folder }, index) => [folder, index]))
    const upwards = folders.flatMap(({ folder, imports: allowed, types = [] }) =>
      [...allowed, ...types].filter((other) => place.get(other)! >= place.get(folder)!),
    )
    expect(upwards).toEqual([])
  })
})

describe('every rule', () => {
  it.each(rules)('holds: $why', ({ inside, never }) => {
    const through = imports.filter(({ from, to, typesOnly, onDemand }) => {
      const place = inside.exec(from)
      if (place === null || typesOnly || onDemand) return false
      return new RegExp(never.source.replace('$1', place[1] ?? '')).test(to)
    })
    expect(through.map(describeImport)).toEqual([])
  })
})

describe('a file that may not do I/O', () => {
  it('imports nothing that does', () => {
    const impure = imports.filter(
      ({ from, to, typesOnly }) => !typesOnly && mayNotDoIo(from) && doesIo(to) && !PURE_FILES.has(to),
    )
    expect(impure.map(describeImport)).toEqual([])
  })

  it('does not import koffi, which only src/system/libc.ts may', () => {
    const importers = new Set(imports.filter(({ to }) => to === 'koffi').map(({ from }) => from))
    expect([...importers]).toEqual(['src/system/libc.ts'])
  })
})

describe('docs/architecture.md', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

  it('shows the table of folders', async () => {
    const [before = '', rest = ''] = page.split(
      /(?<=<!-- folders: made by test\/architecture\/folders\.test\.ts -->\n)/,
    )
    const after = rest.slice(rest.indexOf('<!-- /folders -->'))
    const written = `${before}\n${tableOfFolders()}\n${after}`
    await expect(written).toMatchFileSnapshot(join(root, 'docs/architecture.md'))
  })

  it('names files that exist', () => {
    const named = [...page.matchAll(/`((?:src|packages|test|docs|scripts)\/[\w./-]*\w\.\w+)`/g)].map(
      ([, path]) => path!,
    )
    const missing = named.filter((path) => {
      try {
        readFileSync(join(root, path))
        return false
      } catch {
        return true
      }
    })
    expect(named.length).toBeGreaterThan(10)
    expect(missing).toEqual([])
  })
})

function isAllowed({ from, to, typesOnly }: Import): boolean {
  const [folder, other] = [folderOf(from)!, folderOf(to)]
  if (other === undefined || other === folder) return true
  if (folder.imports.includes(other.folder)) return true
  return typesOnly && (folder.types ?? []).includes(other.folder)
}

function mayNotDoIo(file: string): boolean {
  if (/^src\/modes\/\w+\/plan\//.test(file)) return true
  const { folder, effects } = folderOf(file)!
  return effects !== 'all' && !effects.some((name) => file === `${pathOf(folder)}/${name}`)
}

function doesIo(to: string): boolean {
  if (to.startsWith('node:')) return !PURE_MODULES.has(to)
  return folderOf(to) !== undefined && !mayNotDoIo(to)
}

function isIn(path: string, folder: string): boolean {
  return path.startsWith(`${pathOf(folder)}/`)
}

function pathOf(folder: string): string {
  return folder === 'sandbox' ? 'packages/sandbox/src' : `src/${folder}`
}

function describeImport({ from, to }: Import): string {
  return `${from} imports ${to}`
}

function tableOfFolders(): string {
  const rows = folders.map(({ folder, what, imports: allowed, types = [], effects }) => {
    const names = [...allowed, ...types.map((name) => `${name} (types)`)]
    const touching = effects === 'all' ? 'all' : effects.map((name) => `\`${name}\``).join(', ') || 'none'
    return `| \`${pathOf(folder)}\` | ${what} | ${names.join(', ') || 'nothing'} | ${touching} |`
  })
  return ['| folder | purpose | may import | files that may do I/O |', '| --- | --- | --- | --- |', ...rows, ''].join(
    '\n',
  )
}
