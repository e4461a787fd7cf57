import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { AccessError } from './cluster-access.ts'
import { readKubeconfig } from './kubeconfig.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

type Fields = Record<string, unknown>

/** Writes a kubeconfig with one cluster and one user. */
function write(cluster: Fields, user: Fields = {}, more: Fields = {}): string {
  const path = join(folder, 'config')
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'here',
    contexts: [{ name: 'here', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server: 'https://api.example:6443', ...cluster } }],
    users: [{ name: 'u', user }],
    ...more,
  }
  writeFileSync(path, stringify(config))
  return path
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

describe('readKubeconfig()', () => {
  test('names the path of a missing file', () => {
    const read = (): unknown => readKubeconfig({ path: '/nowhere/kubeconfig' })
    expect(read).toThrow(AccessError)
    expect(read).toThrow('Cannot read kubeconfig /nowhere/kubeconfig: no such file or directory')
  })

  test('takes the current context', () => {
    const path = write(
      {},
      {},
      {
        'current-context': 'there',
        contexts: [
          { name: 'here', context: { cluster: 'c', user: 'u' } },
          { name: 'there', context: { cluster: 'd', user: 'v' } },
        ],
        clusters: [
          { name: 'c', cluster: { server: 'https://c' } },
          { name: 'd', cluster: { server: 'https://d:6443/prefix' } },
        ],
        users: [
          { name: 'u', user: { token: 'one' } },
          { name: 'v', user: { token: 'two' } },
        ],
      },
    )
    const access = readKubeconfig({ path })
    expect(access.server.href).toBe('https://d:6443/prefix')
    expect(access.authentication).toEqual({ type: 'token', token: 'two' })
  })

  test('reads certificates as data, and as files relative to the kubeconfig', () => {
    const asData = readKubeconfig({
      path: write(
        { 'certificate-authority-data': base64('ca') },
        { 'client-certificate-data': base64('cert'), 'client-key-data': base64('key') },
      ),
    })
    expect(asData.tls).toEqual({
      ca: { data: Buffer.from('ca') },
      clientCertificate: { cert: { data: Buffer.from('cert') }, key: { data: Buffer.from('key') } },
      serverName: undefined,
      verify: true,
    })
    const asFiles = readKubeconfig({
      path: write(
        { 'certificate-authority': 'pki/ca.crt' },
        { 'client-certificate': '/etc/client.crt', 'client-key': '../client.key' },
      ),
    })
    expect(asFiles.tls.ca).toEqual({ file: join(folder, 'pki/ca.crt') })
    expect(asFiles.tls.clientCertificate).toEqual({
      cert: { file: '/etc/client.crt' },
      key: { file: join(folder, '../client.key') },
    })
  })

  test('data wins over a file', () => {
    const path = write({ 'certificate-authority': 'ca.crt', 'certificate-authority-data': base64('ca') })
    expect(readKubeconfig({ path }).tls.ca).toEqual({ data: Buffer.from('ca') })
  })

  test('reads insecure-skip-tls-verify, tls-server-name and proxy-url', () => {
    const path = write({
      'insecure-skip-tls-verify': true,
      'tls-server-name': 'kubernetes',
      'proxy-url': 'http://user:pw@proxy:3128',
    })
    const access = readKubeconfig({ path })
    expect(access.tls).toMatchObject({ verify: false, serverName: 'kubernetes' })
    expect(access.proxyUrl?.host).toBe('proxy:3128')
  })

  test.each([
    [{ token: 't' }, { type: 'token', token: 't' }],
    [
      { token: 't', tokenFile: '/var/token' },
      { type: 'tokenFile', file: '/var/token' },
    ],
    [
      { username: 'a', password: 'b' },
      { type: 'basic', username: 'a', password: 'b' },
    ],
    [{}, { type: 'anonymous' }],
  ])('the user %j authenticates as %j', (user, expected) => {
    expect(readKubeconfig({ path: write({}, user) }).authentication).toEqual(expected)
  })

  test('resolves an exec plugin, with what it wants to know of the cluster', () => {
    const path = write(
      { extensions: [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'x' } }] },
      {
        exec: {
          apiVersion: 'client.authentication.k8s.io/v1',
          command: './bin/login',
          args: ['token', 7],
          env: [{ name: 'PROFILE', value: 'prod' }],
          interactiveMode: 'Never',
          provideClusterInfo: true,
        },
      },
    )
    expect(readKubeconfig({ path }).authentication).toEqual({
      type: 'exec',
      plugin: {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: join(folder, 'bin/login'),
        args: ['token', '7'],
        env: [{ name: 'PROFILE', value: 'prod' }],
        installHint: '',
        cluster: { server: 'https://api.example:6443', config: { audience: 'x' } },
      },
    })
  })

  test('reads impersonation', () => {
    const path = write({}, { as: 'jane', 'as-groups': ['a', 'b'], 'as-user-extra': { 'k/x': ['1'] } })
    expect(readKubeconfig({ path }).impersonation).toEqual({
      'Impersonate-User': 'jane',
      'Impersonate-Group': ['a', 'b'],
      'Impersonate-Extra-k%2Fx': ['1'],
    })
  })

  test('--master replaces the server and keeps the rest', () => {
    const access = readKubeconfig({ path: write({}, { token: 't' }), master: 'https://10.0.0.1:443' })
    expect(access.server.host).toBe('10.0.0.1')
    expect(access.authentication.type).toBe('token')
  })

  test('--master without a kubeconfig is an anonymous http connection', () => {
    const access = readKubeconfig({ path: '', master: '127.0.0.1:8080' })
    expect(access.server.href).toBe('http://127.0.0.1:8080/')
    expect(access.authentication.type).toBe('anonymous')
  })

  test('a server without a scheme is https where TLS is configured', () => {
    const path = write({ server: 'api:6443', 'certificate-authority': 'ca.crt' })
    expect(readKubeconfig({ path }).server.href).toBe('https://api:6443/')
  })

  test.each<[string, Fields, Fields, Fields]>([
    ['there is no context "gone"', {}, {}, { 'current-context': 'gone' }],
    ['current-context is not set', {}, {}, { 'current-context': '' }],
    ['there is no cluster "c"', {}, {}, { clusters: [] }],
    ['there is no user "u"', {}, {}, { users: [] }],
    ['clusters: must be a list', {}, {}, { clusters: 'x' }],
    ['the cluster has no server', { server: '' }, {}, {}],
    ['server: Invalid value: "ftp://x": must be an http or https URL', { server: 'ftp://x' }, {}, {}],
    [
      'proxy-url: socks4:// is not supported, must be http://, https:// or socks5://',
      { 'proxy-url': 'socks4://x' },
      {},
      {},
    ],
    ['insecure-skip-tls-verify', { 'insecure-skip-tls-verify': true, 'certificate-authority': 'x' }, {}, {}],
    ['client-certificate and client-key must be given together', {}, { 'client-certificate': 'x' }, {}],
    ['client-key-data: must be base64', {}, { 'client-key-data': '!' }, {}],
    ['auth-provider: no longer exists', {}, { 'auth-provider': { name: 'gcp' } }, {}],
    ['exec.apiVersion: Invalid value: "x"', {}, { exec: { apiVersion: 'x', command: 'y' } }, {}],
    [
      'exec.interactiveMode: Invalid value: "Always"',
      {},
      { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'y', interactiveMode: 'Always' } },
      {},
    ],
  ])('refuses with: %s', (message, cluster, user, more) => {
    const path = write(cluster, user, more)
    expect(() => readKubeconfig({ path })).toThrow(message)
    expect(() => readKubeconfig({ path })).toThrow(path)
  })

  test('refuses a file that is no YAML, and one that is no mapping', () => {
    const path = join(folder, 'broken')
    writeFileSync(path, '{ not: yaml')
    expect(() => readKubeconfig({ path })).toThrow(`Cannot use kubeconfig ${path}`)
    writeFileSync(path, '- a\n')
    expect(() => readKubeconfig({ path })).toThrow('it is not a mapping')
  })

  test('never shows a line of the file', () => {
    const path = join(folder, 'secret')
    for (const text of [
      'a: 1\n token: "SECRET\n',
      'token: SECRET: x\n',
      'users:\n- token: [SECRET\n',
      'a: *SECRET',
      '%SECRET\n---\n',
    ]) {
      writeFileSync(path, text)
      let message = ''
      try {
        readKubeconfig({ path })
      } catch (error) {
        message = String(error)
      }
      expect(message).toContain(`Cannot use kubeconfig ${path}`)
      expect(message).not.toContain('SECRET')
    }
    writeFileSync(path, 'a: 1\nb: "x\n')
    expect(() => readKubeconfig({ path })).toThrow('it is not YAML: MISSING_CHAR on line')
  })

  test('refuses a password in the address of the server', () => {
    const path = write({ server: 'https://me:SECRET@api:6443' }, {}, {})
    expect(() => readKubeconfig({ path })).toThrow('must not have a user or a password')
    expect(() => readKubeconfig({ path })).not.toThrow('SECRET')
  })
})
