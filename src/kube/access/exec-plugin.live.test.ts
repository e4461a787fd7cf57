import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ExecPlugin } from './exec-plugin.ts'

const API = 'client.authentication.k8s.io/v1'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'exec-plugin-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** A plugin that notes each of its runs in a file, and runs the given shell commands. */
function plugin(script: string, now: () => number = Date.now): { plugin: ExecPlugin; runs: () => number } {
  const file = join(folder, `runs-${Math.random()}`)
  writeFileSync(file, '')
  const config = {
    apiVersion: API,
    command: '/bin/sh',
    args: ['-c', `echo run >> ${file}; ${script}`],
    env: [{ name: 'GREETING', value: 'hello' }],
    installHint: 'install it first',
    cluster: { server: 'https://x' },
  }
  return { plugin: new ExecPlugin(config, now), runs: () => readFileSync(file, 'utf8').split('\n').length - 1 }
}

function credential(status: Record<string, unknown>, apiVersion: string = API): string {
  return `echo '${JSON.stringify({ apiVersion, kind: 'ExecCredential', status })}'`
}

describe('ExecPlugin.credential()', () => {
  test('runs the plugin once, also for requests at the same time, and keeps what it said', async () => {
    const { plugin: exec, runs } = plugin(credential({ token: 't' }))
    const credentials = await Promise.all([exec.credential(), exec.credential()])
    credentials.push(await exec.credential())
    expect(credentials.map(({ token }) => token)).toEqual(['t', 't', 't'])
    expect(runs()).toBe(1)
  })

  test('runs it again before the credential expires', async () => {
    let now = Date.UTC(2026, 0, 1)
    const status = { token: 't', expirationTimestamp: '2026-01-01T01:00:00Z' }
    const { plugin: exec, runs } = plugin(credential(status), () => now)
    await exec.credential()
    now += 59 * 60_000
    await exec.credential()
    expect(runs()).toBe(1)
    now += 55_000
    await exec.credential()
    expect(runs()).toBe(2)
  })

  test('runs it again when the credential was refused', async () => {
    const { plugin: exec, runs } = plugin(credential({ token: 't' }))
    await exec.credential()
    exec.forget()
    await exec.credential()
    expect(runs()).toBe(2)
  })

  test('returns client certificates', async () => {
    const { plugin: exec } = plugin(credential({ clientCertificateData: 'cert', clientKeyData: 'key' }))
    expect((await exec.credential()).clientCertificate).toEqual({ cert: 'cert', key: 'key' })
  })

  test('gives the plugin its environment and KUBERNETES_EXEC_INFO', async () => {
    const file = join(folder, 'info')
    const { plugin: exec } = plugin(`echo "$GREETING $KUBERNETES_EXEC_INFO" > ${file}; ${credential({ token: 't' })}`)
    await exec.credential()
    const said = readFileSync(file, 'utf8')
    expect(said).toMatch(/^hello /)
    expect(JSON.parse(said.slice('hello '.length))).toEqual({
      apiVersion: API,
      kind: 'ExecCredential',
      spec: { interactive: false, cluster: { server: 'https://x' } },
    })
  })

  test.each([
    ['exit 3', 'it failed with status 3'],
    ['kill -TERM $$', 'it ended by SIGTERM'],
    ['head -c 3000000 /dev/zero', 'it printed more than 1048576 bytes'],
    ['echo no credentials >&2; exit 1', 'no credentials'],
    ['echo nonsense', 'it printed 9 characters that are no JSON'],
    ['echo {}', 'it printed no ExecCredential'],
    [credential({}), 'it printed neither token nor certificate'],
    [
      credential({ token: 't' }, 'client.authentication.k8s.io/v1beta1'),
      'it speaks "client.authentication.k8s.io/v1beta1"',
    ],
  ])('rejects after %s', async (script, message) => {
    await expect(plugin(script).plugin.credential()).rejects.toThrow(message)
  })

  test.each(['echo SECRET', 'echo {SECRET', 'exit 1'])(
    'never shows what it prints, nor its arguments, after %s',
    async (script) => {
      const config = {
        apiVersion: API,
        command: '/bin/sh',
        args: ['-c', script, 'SECRET'],
        env: [],
        cluster: undefined,
      }
      const failure: unknown = await new ExecPlugin({ ...config, installHint: '' })
        .credential()
        .catch((error: unknown) => error)
      expect(String(failure)).toContain('Cannot get credentials')
      expect(String(failure)).not.toContain('SECRET')
    },
  )

  test('shows the install hint when there is no such program', async () => {
    const config = { apiVersion: API, command: '/nowhere/login', args: [], env: [], cluster: undefined }
    const exec = new ExecPlugin({ ...config, installHint: 'install it first' })
    await expect(exec.credential()).rejects.toThrow(
      'Cannot get credentials from /nowhere/login: no such program\ninstall it first',
    )
  })
})
