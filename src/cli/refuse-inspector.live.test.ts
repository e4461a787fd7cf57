import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const main = readFileSync(new URL('main.ts', import.meta.url), 'utf8')
const source = readFileSync(new URL('refuse-inspector.ts', import.meta.url), 'utf8')

/** Runs the program until it has got SIGUSR1 and says so or opens the inspector, and returns what it said. */
async function saidAfterSignal(program: string): Promise<string> {
  // Any port: another test, or a person, may use the usual one.
  const wait = `console.error('ready'); setInterval(() => {}, 1000); setTimeout(() => process.exit(), 1500)`
  const child = spawn(process.execPath, ['--inspect-port=0', '--input-type=module', '-e', `${program}\n${wait}`])
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    if (!said.includes('ready') && chunk.includes('ready')) child.kill('SIGUSR1')
    said += chunk.toString()
  })
  await once(child, 'close')
  return said
}

test('SIGUSR1 does not open the inspector of the program', async () => {
  expect(/^import .*$/m.exec(main)?.[0]).toBe("import './refuse-inspector.ts'")
  expect(await saidAfterSignal(source)).not.toContain('Debugger')
  // And it would otherwise.
  expect(await saidAfterSignal('')).toContain('Debugger listening')
})
