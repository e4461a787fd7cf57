import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Import, importsOfProgram, root, sources } from './imports.ts'
import { type Room, rooms, walls } from './rooms.ts'

const imports = importsOfProgram()
const roomOf = (path: string): Room | undefined => rooms.find(({ folder }) => isIn(path, folder))

/** Modules of Node that compute and touch nothing. */
const PURE_MODULES = new Set(['node:buffer', 'node:path', 'node:crypto', 'node:util'])
/** Of rooms that touch the world, the files that do not. */
const PURE_FILES = new Set(['src/system/socket-address.ts', 'src/kube/types.ts', 'src/modes/rehearsal.ts'])

describe('every room', () => {
  it('is in the table', () => {
    expect(sources().filter((file) => roomOf(file) === undefined)).toEqual([])
    const empty = rooms.filter(({ folder }) => !sources().some((file) => isIn(file, folder)))
    expect(empty).toEqual([])
  })

  it('imports only what the table allows', () => {
    expect(imports.filter((each) => !isAllowed(each)).map(describeImport)).toEqual([])
  })

  it('needs all that the table allows it', () => {
    const unused = rooms.flatMap(({ folder, imports: allowed, types = [] }) =>
      [...allowed, ...types]
        .filter((other) => !imports.some(({ from, to }) => isIn(from, folder) && isIn(to, other)))
        .map((other) => `${folder} -> ${other}`),
    )
    expect(unused).toEqual([])
  })

  it('stands on rooms that come before it', () => {
    const place = new Map(rooms.map(({ folder }, index) => [folder, index]))
    const upwards = rooms.flatMap(({ folder, imports: allowed, types = [] }) =>
      [...allowed, ...types].filter((other) => place.get(other)! >= place.get(folder)!),
    )
    expect(upwards).toEqual([])
  })
})

describe('every wall', () => {
  it.each(walls)('holds: $why', ({ inside, never }) => {
    const through = imports.filter(({ from, to, typesOnly, onDemand }) => {
      const place = inside.exec(from)
      if (place === null || typesOnly || onDemand) return false
      return new RegExp(never.source.replace('$1', place[1] ?? '')).test(to)
    })
    expect(through.map(describeImport)).toEqual([])
  })
})

describe('a file that is not named as one that touches the world', () => {
  it('is pure', () => {
    const impure = imports.filter(
      ({ from, to, typesOnly }) => !typesOnly && isPure(from) && touchesTheWorld(to) && !PURE_FILES.has(to),
    )
    expect(impure.map(describeImport)).toEqual([])
  })

  it('alone knows koffi: src/system/libc.ts', () => {
    const knowing = new Set(imports.filter(({ to }) => to === 'koffi').map(({ from }) => from))
    expect([...knowing]).toEqual(['src/system/libc.ts'])
  })
})

describe('docs/architecture.md', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

  it('shows the table of rooms', async () => {
    const [before = '', rest = ''] = page.split(/(?<=<!-- rooms: made by test\/house\/rooms\.test\.ts -->\n)/)
    const after = rest.slice(rest.indexOf('<!-- /rooms -->'))
    const written = `${before}\n${tableOfRooms()}\n${after}`
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
  const [room, other] = [roomOf(from)!, roomOf(to)]
  if (other === undefined || other === room) return true
  if (room.imports.includes(other.folder)) return true
  return typesOnly && (room.types ?? []).includes(other.folder)
}

function isPure(file: string): boolean {
  if (/^src\/modes\/\w+\/plan\//.test(file)) return true
  const { folder, effects } = roomOf(file)!
  return effects !== 'all' && !effects.some((name) => file === `${pathOf(folder)}/${name}`)
}

function touchesTheWorld(to: string): boolean {
  if (to.startsWith('node:')) return !PURE_MODULES.has(to)
  return roomOf(to) !== undefined && !isPure(to)
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

function tableOfRooms(): string {
  const rows = rooms.map(({ folder, what, imports: allowed, types = [], effects }) => {
    const names = [...allowed, ...types.map((name) => `${name} (types)`)]
    const touching = effects === 'all' ? 'all' : effects.map((name) => `\`${name}\``).join(', ') || 'none: pure'
    return `| \`${pathOf(folder)}\` | ${what} | ${names.join(', ') || 'nothing'} | ${touching} |`
  })
  return [
    '| room | what it is for | may import | files that touch the world |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}
