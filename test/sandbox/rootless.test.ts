// The sandbox without root: as a user who owns nothing, in a user namespace.

import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { enterMachine, leftovers } from './support/machine.ts'
import { program as rootsProgram, type Finished } from './support/sandbox-process.ts'

enterMachine()
const NOBODY = 65534
const folder = mkdtempSync(join(tmpdir(), 'kps-rootless-'))
const root = join(folder, 'kube-proxy-sandbox')
// The checkout may be where nobody cannot go, such as the home of root: it is seen here, too.
const rootsCheckout = join(rootsProgram, '../..')
const checkout = join(folder, 'checkout')
const program = join(checkout, 'bin/kube-proxy')

beforeAll(() => {
  spawnSync(rootsProgram, ['--version'])
  mkdirSync(checkout)
  chownSync(folder, NOBODY, NOBODY)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a command as nobody, in the checkout. */
function asNobody(command: readonly string[], env: Record<string, string> = {}): Finished {
  const mounted = ['sh', '-c', 'mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"', rootsCheckout, checkout]
  const id = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups', '--inh-caps=-all']
  const settings = Object.entries({ PATH: process.env['PATH'], XDG_RUNTIME_DIR: folder, HOME: folder, ...env })
  const environment = settings.map(([name, value]) => `${name}=${value}`)
  return spawnSync(
    'unshare',
    ['--mount', '--', ...mounted, 'setpriv', ...id, '--', 'env', '-i', ...environment, ...command],
    { encoding: 'utf8', timeout: 60_000 },
  )
}

function obstacle(): string | undefined {
  if (asNobody(['test', '-r', join(checkout, 'dist/src/cli/main.js')]).status !== 0) {
    return 'the files of the checkout cannot be read by other users'
  }
  const tried = asNobody(['unshare', '--user', '--map-root-user', '--net', '--mount', '--', 'true'])
  return tried.status === 0 ? undefined : `user namespaces are not allowed here: ${tried.stderr.trim()}`
}

describe('a user without root', () => {
  afterEach(() => {
    asNobody([program, 'sandbox', 'down'])
    expect(leftovers(root)).toEqual([])
  })

  test('has a sandbox in a user namespace', ({ skip }) => {
    const reason = obstacle()
    if (reason !== undefined) return skip(reason)
    const started = asNobody([program, 'sandbox', '--detach'])
    expect(started).toMatchObject({ status: 0, stderr: '' })
    expect(started.stdout).toMatch(/^A cluster of 2 nodes in mode nftables, with 3 pods and 1 service, ready in/)

    // The commands that it tells to type work as they stand.
    const commands = started.stdout
      .split('\n')
      .flatMap((line) => /^ {2}(\S+ sandbox exec [^#]+?) +#/.exec(line)?.[1] ?? [])
    expect(commands).toHaveLength(4)
    expect(commands[0]).toMatch(/ sandbox exec machine -- curl http:\/\/10\.96\.\d+\.\d+:3000$/)
    for (const command of commands) {
      const { status, stdout } = asNobody(['sh', '-c', command.replaceAll('curl ', 'curl -sS ')])
      expect({ command, status, stdout }).toEqual({
        command,
        status: 0,
        stdout: expect.stringMatching(/^(viola from whoami-[a-z0-9]{8,10}-[a-z0-9]{5}|10\.244\.\d\.\d+)\n$/) as string,
      })
    }

    // The API server is reached from outside, with the kubeconfig of the user.
    const { stdout: kubeconfig } = asNobody([program, 'sandbox', 'kubeconfig'])
    expect(kubeconfig).toBe(`${root}/sandbox/kubeconfig\n`)
    const version = asNobody([
      'curl',
      '-sSk',
      `${/server: (\S+)/.exec(asNobody(['cat', kubeconfig.trim()]).stdout)?.[1]}/version`,
    ])
    expect(version.stdout).toContain('gitVersion')

    const pod = /whoami-[a-z0-9]{8,10}-[a-z0-9]{5}/.exec(started.stdout)![0]
    expect(asNobody([program, 'sandbox', 'exec', pod, '--', 'hostname'])).toMatchObject({
      status: 0,
      stdout: `${pod}\n`,
    })
    const byName = asNobody([program, 'sandbox', 'exec', pod, '--', 'curl', '-sS', 'http://whoami:3000'])
    expect(byName).toMatchObject({ status: 0, stdout: expect.stringMatching(/^viola from whoami-/) as string })
    expect(asNobody([program, 'sandbox', 'status']).stdout).toMatch(/^node-1 .* healthy /m)
    expect(asNobody([program, 'sandbox', 'down'])).toMatchObject({ status: 0, stdout: 'Sandbox sandbox is down.\n' })
  })

  test('is reported what is needed where user namespaces are not allowed', () => {
    const tools = join(folder, 'tools')
    mkdirSync(tools, { recursive: true })
    writeFileSync(
      join(tools, 'unshare'),
      '#!/bin/sh\necho "unshare: unshare failed: Operation not permitted" >&2\nexit 1\n',
    )
    chmodSync(join(tools, 'unshare'), 0o755)
    const env = { PATH: `${tools}:${process.env['PATH']}` }
    expect(asNobody([program, 'sandbox'], env)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        /^kube-proxy: Cannot build a network: .*\(unshare failed: Operation not permitted\)\. Run it as root \(put sudo in front/,
      ) as string,
    })
  })

  test('is reported which package has what is missing', () => {
    const tools = join(folder, 'few')
    mkdirSync(tools, { recursive: true })
    for (const tool of ['sh', 'node', 'find', 'head', 'readlink', 'dirname']) {
      const { stdout } = spawnSync('sh', ['-c', `command -v ${tool}`], { encoding: 'utf8' })
      writeFileSync(join(tools, tool), `#!/bin/sh\nexec ${stdout.trim()} "$@"\n`, { mode: 0o755 })
    }
    expect(asNobody(['env', `PATH=${tools}`, '/bin/sh', program, 'sandbox'])).toMatchObject({
      status: 1,
      stderr: 'kube-proxy: Cannot use a user namespace: unshare is missing (package util-linux)\n',
    })
  })
})
