// The documentation names files, links and npm scripts that exist.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { besideOf } from '../bench/beside-report.ts'
import { root } from './imports.ts'

const pages = ['', 'docs', 'deploy', 'packages', 'src', 'examples']
  .flatMap((folder) => markdownFiles(folder))
  .filter((path) => path !== 'CHANGELOG.md' && !path.includes('node_modules'))
const tests = new Set(
  ['src', 'packages', 'test'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((path) => basename(path)),
  ),
)
const scripts = new Set(Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts))

describe.each(pages)('%s', (page) => {
  const text = readFileSync(join(root, page), 'utf8')

  it('has no broken link', () => {
    const links = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)].map(([, a, b]) => (a ?? b)!)
    const broken = links.filter((link) => !/^https?:/.test(link) && !resolves(page, link))
    expect(broken).toEqual([])
  })

  it('names files that exist', () => {
    const named = [...text.matchAll(/`((?:src|packages|test|docs|scripts|deploy|examples)\/[\w./-]+)`/g)]
    const missing = named.map(([, path]) => path!).filter((path) => !existsSync(join(root, path)))
    expect(missing).toEqual([])
  })

  it('names tests that exist', () => {
    const named = [...text.matchAll(/`([\w.-]+\.(?:test|suite)\.ts)`/g)].map(([, name]) => name!)
    expect(named.filter((name) => !name.startsWith('foo.') && !tests.has(name))).toEqual([])
  })

  it('names npm scripts that exist', () => {
    const named = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name!)
    expect(named.filter((name) => !scripts.has(name))).toEqual([])
  })
})

it('README.md and docs/performance.md have the same table beside kube-proxy', () => {
  const [readme, page] = ['README.md', 'docs/performance.md'].map((path) =>
    besideOf(readFileSync(join(root, path), 'utf8')),
  )
  expect(readme).toBe(page)
})

function markdownFiles(folder: string): string[] {
  const entries = readdirSync(join(root, folder), { recursive: folder !== '', encoding: 'utf8' })
  return entries.filter((name) => name.endsWith('.md')).map((name) => join(folder, name))
}

function resolves(page: string, link: string): boolean {
  const [path = '', anchor] = link.split('#')
  const target = path === '' ? join(root, page) : join(root, dirname(page), path)
  if (!existsSync(target)) return false
  if (anchor === undefined || !target.endsWith('.md')) return true
  return anchorsOf(readFileSync(target, 'utf8')).includes(anchor)
}

/** As GitHub makes them of headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
    title!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
