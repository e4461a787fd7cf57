// bin/kube-proxy on a small checkout of its own, with the real compiler. Only npm is kept away: it would need the network.

import { execFile, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'

const run = promisify(execFile)
const repository = fileURLToPath(new URL('../..', import.meta.url))
const program = `
process.on('SIGTERM', () => process.exit(7))
console.log(JSON.stringify([process.cwd(), ...process.argv.slice(2)]))
if (process.argv.includes('--wait')) setInterval(() => {}, 1000)
`

const page = `import { render } from 'preact'\nrender(<p>hello</p>, document.body)\n`

let root: string
let launcher: string

beforeAll(() => {
  root = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'launcher-')))
  launcher = join(root, 'bin/kube-proxy')
  for (const folder of ['bin', 'src/cli', 'src/ui/page', 'packages', 'fake'])
    fs.mkdirSync(join(root, folder), { recursive: true })
  const settings = [
    'package.json',
    'package-lock.json',
    'tsconfig.json',
    'tsconfig.build.json',
    'src/ui/page/tsconfig.json',
  ]
  for (const file of ['bin/kube-proxy', ...settings]) fs.copyFileSync(join(repository, file), join(root, file))
  fs.cpSync(join(repository, 'scripts'), join(root, 'scripts'), { recursive: true })
  // Packages that are as new as the lock file need no npm.
  fs.utimesSync(join(root, 'package-lock.json'), 0, 0)
  fs.symlinkSync(join(repository, 'node_modules'), join(root, 'node_modules'))
  fs.writeFileSync(join(root, 'fake/npm'), '#!/bin/sh\necho "npm $*" >&2\nexit 9\n', { mode: 0o755 })
  fs.writeFileSync(join(root, 'src/cli/main.ts'), program)
  // The threads of the real program have files of their own in the bundle.
  for (const thread of ['src/data-path/worker.ts', 'src/netlink/send-worker.ts']) {
    fs.mkdirSync(join(root, thread, '..'), { recursive: true })
    fs.writeFileSync(join(root, thread), '')
  }
  fs.writeFileSync(join(root, 'src/ui/page/main.tsx'), page)
  fs.writeFileSync(join(root, 'src/ui/page/page.css'), 'body {}')
})

afterAll(() => fs.rmSync(root, { recursive: true, force: true }))

const env = () => ({ ...process.env, PATH: `${root}/fake:${process.env['PATH']}` })

async function start(command: string, args: readonly string[] = [], cwd: string = '/') {
  const { stdout, stderr } = await run(command, args, { cwd, env: env() })
  return { output: JSON.parse(stdout) as string[], stderr }
}

test('bin/kube-proxy builds once, however many start at the same time', async () => {
  const starts = await Promise.all(['a', 'b', 'c'].map((name) => start(launcher, [name, 'x y', '--z='])))
  expect(starts.map(({ output }) => output)).toEqual(['a', 'b', 'c'].map((name) => ['/', name, 'x y', '--z=']))
  expect(starts.filter(({ stderr }) => stderr === 'kube-proxy: building\n')).toHaveLength(1)
  expect(starts.filter(({ stderr }) => stderr === '')).toHaveLength(2)
})

test('bin/kube-proxy says nothing and builds nothing when all is built', async () => {
  expect(await start(launcher)).toEqual({ output: ['/'], stderr: '' })
})

test('bin/kube-proxy runs the proxy as it is shipped, and a command from the files of the build', async () => {
  const which = `console.log(JSON.stringify([process.argv[1], ...process.argv.slice(2)]))`
  fs.writeFileSync(join(root, 'src/cli/main.ts'), which)
  expect((await start(launcher, ['--v=2'])).output).toEqual([join(root, 'dist/bundle/kube-proxy.cjs'), '--v=2'])
  expect((await start(launcher)).output).toEqual([join(root, 'dist/bundle/kube-proxy.cjs')])
  expect((await start(launcher, ['sandbox'])).output).toEqual([join(root, 'dist/src/cli/main.js'), 'sandbox'])
  expect(fs.readdirSync(join(root, 'dist')).filter((name) => name.startsWith('bundle.'))).toEqual([])
  fs.writeFileSync(join(root, 'src/cli/main.ts'), program)
  await start(launcher)
})

test('bin/kube-proxy works through links, and by a relative path', async () => {
  fs.mkdirSync(join(root, 'elsewhere'))
  fs.symlinkSync(join(root, 'bin'), join(root, 'elsewhere/folder'))
  fs.symlinkSync('folder/kube-proxy', join(root, 'elsewhere/link'))
  expect((await start(join(root, 'elsewhere/link'))).output).toEqual(['/'])
  expect((await start('./link', [], join(root, 'elsewhere'))).output).toEqual([join(root, 'elsewhere')])
  expect((await start('bin/kube-proxy', [], root)).output).toEqual([root])
})

test('bin/kube-proxy builds again when a source is newer, and not for a test', async () => {
  const later = Date.now() / 1000 + 5
  fs.writeFileSync(join(root, 'src/cli/x.test.ts'), '')
  fs.utimesSync(join(root, 'src/cli/x.test.ts'), later, later)
  fs.utimesSync(join(root, 'src/cli'), 0, 0)
  expect((await start(launcher)).stderr).toBe('')
  fs.writeFileSync(join(root, 'src/cli/main.ts'), `${program}// changed\n`)
  expect((await start(launcher)).stderr).toBe('kube-proxy: building\n')
  expect((await start(launcher)).stderr).toBe('')
})

test('bin/kube-proxy builds the page with it, again when that is newer, and not when it is too large', async () => {
  const built = () => fs.readFileSync(join(root, 'dist/src/ui/page.js'), 'utf8')
  expect(built()).toContain('hello')
  expect(fs.readFileSync(join(root, 'dist/src/ui/page.css'), 'utf8')).toBe('body {}')
  const write = (text: string) => fs.writeFileSync(join(root, 'src/ui/page/main.tsx'), text)
  write(page.replace('hello', 'good day'))
  expect((await start(launcher)).stderr).toBe('kube-proxy: building\n')
  expect(built()).toContain('good day')
  write(page.replace('hello', 'x'.repeat(170_000)))
  await expect(start(launcher)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('and may have 170000') as string,
  })
  write(page)
  expect((await start(launcher)).stderr).toBe('kube-proxy: building\n')
})

test('bin/kube-proxy installs packages when the lock file is newer, and says so when that fails', async () => {
  const later = Date.now() / 1000 + 5
  fs.utimesSync(join(root, 'package-lock.json'), later, later)
  await expect(start(launcher)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^kube-proxy: installing npm packages\nnpm ci .*\nkube-proxy: Cannot install packages: npm ci failed\n$/,
    ) as string,
  })
  fs.utimesSync(join(root, 'package-lock.json'), 0, 0)
})

test('bin/kube-proxy hands signals and the exit status of the program through', async () => {
  const child = spawn(launcher, ['--wait'], { env: env(), stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve) => child.stdout.once('data', resolve))
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  expect(await ended).toBe(7)
})
