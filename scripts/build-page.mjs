// The page of `kube-proxy sandbox` and `kube-proxy ui`, in dist/src/ui: page.js and page.css. Part of every build; fails when the page is
// larger than it may be.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'

const root = join(import.meta.dirname, '..')
const pageFolder = join(root, 'src', 'ui', 'page')

/** Of script, as it is sent. */
export const LARGEST_SCRIPT = 170_000

/** Writes both files and answers the size of the script in bytes. */
export async function buildPage(out = join(root, 'dist', 'src', 'ui')) {
  mkdirSync(out, { recursive: true })
  const size = await writeScript(join(out, 'page.js'))
  writeFileSync(join(out, 'page.css'), readStyles())
  if (size > LARGEST_SCRIPT) {
    throw new Error(`Cannot ship the page: page.js has ${size} bytes, and may have ${LARGEST_SCRIPT}`)
  }
  return size
}

async function writeScript(file) {
  const build = await rolldown({
    cwd: root,
    input: join(pageFolder, 'main.tsx'),
    platform: 'browser',
    // JSX is as src/ui/page/tsconfig.json says.
    transform: { target: 'es2022', define: { 'process.env.NODE_ENV': '"production"' } },
    onLog(_level, log) {
      throw new Error(`Cannot bundle the page: ${log.message}`)
    },
  })
  const { output } = await build.write({ file, format: 'esm', minify: true, codeSplitting: false, sourcemap: false })
  await build.close()
  return Buffer.byteLength(output[0].code)
}

/** All of its style sheets, in the order of their names. */
function readStyles() {
  const files = readdirSync(pageFolder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.css'))
  return files
    .sort()
    .map((name) => readFileSync(join(pageFolder, name), 'utf8'))
    .join('\n')
}

if (import.meta.filename === process.argv[1]) await buildPage()
