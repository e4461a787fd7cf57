import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { runCommandLine } from './command-line.ts'

let dir: string
let stdout: string
let stderr: string
const handlers = process.listeners('uncaughtException')

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'command-line-'))
  // A sandbox that runs on this machine is not asked.
  vi.stubEnv('KUBE_PROXY_SANDBOX_DIR', dir)
  stdout = ''
  stderr = ''
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += String(text)
    return true
  })
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += String(text)
    return true
  })
})

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  rmSync(dir, { recursive: true, force: true })
  for (const handler of process.listeners('uncaughtException')) {
    if (!handlers.includes(handler)) process.off('uncaughtException', handler)
  }
})

function file(body: string): string {
  const path = join(dir, 'config.yaml')
  writeFileSync(path, `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${body}`)
  return path
}

test('runCommandLine() prints the version or the help, and exits 0', async () => {
  expect(await runCommandLine(['--version'])).toBe(0)
  expect(stdout).toMatch(/^Kubernetes v1\.37\./)
  expect(await runCommandLine(['-h', '--nonsense'])).toBe(0)
  stdout = ''
  expect(await runCommandLine(['-h'])).toBe(0)
  expect(stdout).toContain('Usage:')
  const help = stdout
  stdout = ''
  expect(await runCommandLine(['help'])).toBe(0)
  expect(stdout).toBe(help)
  expect(stderr).toBe('')
})

test("runCommandLine() refuses a wrong command line in one line per mistake, with kube-proxy's status 1", async () => {
  expect(await runCommandLine(['--proxy-moed=x'])).toBe(1)
  expect(stderr).toBe('kube-proxy: unknown flag: --proxy-moed (is --proxy-mode meant?)\nSee kube-proxy --help\n')
  stderr = ''
  expect(await runCommandLine(['-v=1', 'a', 'b'])).toBe(1)
  expect(stderr.split('\n')[0]).toBe('kube-proxy: 2 errors:')
})

test.each([
  ['chekc', 'unknown command chekc (is check meant?)\nSee kube-proxy help\n'],
  ['serve', /^unknown command serve; commands: check, explain, .*, sandbox\nSee kube-proxy help\n$/],
])('runCommandLine() refuses the word %s, which is no command', async (word, message) => {
  expect(await runCommandLine([word, '--x'])).toBe(1)
  expect(stderr.replace(/^kube-proxy: /, '')).toEqual(
    typeof message === 'string' ? message : (expect.stringMatching(message) as string),
  )
})

test.each([
  ['check'],
  ['explain'],
  ['doctor'],
  ['plan'],
  ['render'],
  ['top'],
  ['ui'],
  ['sandbox'],
  ['sandbox', 'exec'],
])('runCommandLine() has the same help for `help %s %s` and --help', async (...words) => {
  expect(await runCommandLine(['help', ...words])).toBe(0)
  const help = stdout
  stdout = ''
  expect(await runCommandLine([...words, '--help'])).toBe(0)
  expect(stdout).toBe(help)
  expect(help).toContain(`kube-proxy ${words.join(' ')}`)
  expect(help.split('\n').filter((line) => line.length > 122)).toEqual([])
})

test('runCommandLine() refuses options that a command does not have, and exits 2 for the sandbox', async () => {
  expect(await runCommandLine(['top', '--vew=x', 'y'])).toBe(1)
  expect(stderr).toBe(
    'kube-proxy: unknown option --vew (is --view meant?)\nkube-proxy: top takes no arguments, but was given "y"\nSee kube-proxy top --help\n',
  )
  stderr = ''
  expect(await runCommandLine(['check', '--proxy-mode', 'x', '-o', 'yaml'])).toBe(1)
  expect(stderr).toContain('--output must be one of text, json, not "yaml"')
  expect(await runCommandLine(['sandbox', 'stop'])).toBe(2)
})

test('runCommandLine() refuses a wrong configuration file by name, without a stack', async () => {
  const path = file('mode: teleport\n')
  expect(await runCommandLine([`--config=${path}`])).toBe(1)
  expect(stderr).toBe(
    `kube-proxy: Cannot use the configuration file ${path}: mode: Invalid value: "teleport": must be one of iptables, ipvs, nftables, userspace (line 3)\nSee kube-proxy --help\n`,
  )
  stderr = ''
  expect(await runCommandLine([`--config=${dir}/missing`])).toBe(1)
  expect(stderr).toMatch(/Cannot read the configuration file .*ENOENT/)
  expect(stderr).not.toMatch(/\n +at /)
})

test('runCommandLine() shows the stack of an error at -v=4', async () => {
  expect(await runCommandLine([`--config=${dir}/missing`, '-v=4'])).toBe(1)
  expect(stderr).toMatch(/\n\s+at /)
})

test('runCommandLine() writes a configuration that says the same when it is read and written again', async () => {
  const [first, second] = [join(dir, 'one'), join(dir, 'two')]
  expect(
    await runCommandLine([`--write-config-to=${first}`, '--proxy-mode=nftables', '--cluster-cidr=10.64.0.0/16']),
  ).toBe(0)
  expect(readFileSync(first, 'utf8')).toContain('\nclusterCIDR: 10.64.0.0/16\n')
  expect(await runCommandLine([`--config=${first}`, `--write-config-to=${second}`])).toBe(0)
  expect(readFileSync(second, 'utf8')).toBe(readFileSync(first, 'utf8'))
  expect(stderr).toContain('"Wrote configuration"')
})

test('runCommandLine() warns of flags that a file outranks and of unknown fields, in the format of the file', async () => {
  const path = file('mode: nftables\nlogging: {format: json}\nnosuch: 1\n')
  expect(await runCommandLine([`--config=${path}`, `--write-config-to=${dir}/out`, '--masquerade-all'])).toBe(0)
  expect(stderr).toContain('These flags are ignored because --config is given: --masquerade-all')
  const json = stderr.split('\n').find((line) => line.startsWith('{'))!
  expect(JSON.parse(json)).toMatchObject({ msg: 'Configuration file: nosuch: unknown field (line 5)' })
})

test('runCommandLine() fails with status 1 when a file cannot be written', async () => {
  expect(await runCommandLine(['--proxy-mode=nftables', `--write-config-to=${dir}/no/such/folder`])).toBe(1)
  expect(stderr).toMatch(/^E.*"Error running kube-proxy" err="Cannot write the configuration to .*ENOENT/)
})
