import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readInClusterAccess } from './in-cluster.ts'

let serviceAccount: string
beforeAll(() => {
  serviceAccount = mkdtempSync(join(tmpdir(), 'serviceaccount-'))
})
afterAll(() => rmSync(serviceAccount, { recursive: true }))

const env = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }

describe('readInClusterAccess()', () => {
  test('says what is missing outside a cluster', () => {
    expect(() => readInClusterAccess({ env: {}, serviceAccount })).toThrow(
      'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined',
    )
  })

  test('names a token that is missing', () => {
    expect(() => readInClusterAccess({ env, serviceAccount: '/nowhere' })).toThrow(
      'open /nowhere/token: no such file or directory',
    )
  })

  test('leaves token and authorities in their files, which are rotated', () => {
    writeFileSync(join(serviceAccount, 'token'), 't')
    writeFileSync(join(serviceAccount, 'ca.crt'), 'c')
    const access = readInClusterAccess({ env, serviceAccount })
    expect(access.server.href).toBe('https://10.96.0.1/')
    expect(access.authentication).toEqual({ type: 'tokenFile', file: join(serviceAccount, 'token') })
    expect(access.tls.ca).toEqual({ file: join(serviceAccount, 'ca.crt') })
  })

  test('puts IPv6 addresses in brackets', () => {
    const access = readInClusterAccess({ env: { ...env, KUBERNETES_SERVICE_HOST: 'fd00::1' }, serviceAccount })
    expect(access.server.host).toBe('[fd00::1]')
  })
})
