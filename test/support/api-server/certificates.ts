// Certificates for a test API server and its clients, made by openssl: Node itself can issue none.

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface KeyPair {
  readonly cert: string
  readonly key: string
}

export interface TestCertificates {
  readonly ca: string
  /** For 127.0.0.1, localhost and kubernetes.default.svc. */
  readonly server: KeyPair
  readonly client: KeyPair
  /** A second client, for rotation. */
  readonly otherClient: KeyPair
}

export function createCertificates(): TestCertificates {
  const folder = mkdtempSync(join(tmpdir(), 'kube-test-certs-'))
  try {
    const openssl = (...args: string[]): void => {
      execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
    }
    const ecKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    openssl('req', '-x509', ...ecKey, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=test-ca', '-days', '2')
    const issue = (name: string, subject: string, extensions: string): KeyPair => {
      writeFileSync(join(folder, `${name}.ext`), extensions)
      openssl('req', ...ecKey, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
      const signing = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2']
      openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signing, '-extfile', `${name}.ext`)
      return { cert: read(`${name}.crt`), key: read(`${name}.key`) }
    }
    const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
    return {
      ca: read('ca.crt'),
      server: issue(
        'server',
        '/CN=kube-apiserver',
        'subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\nextendedKeyUsage=serverAuth\n',
      ),
      client: issue('client', '/O=system:node-proxiers/CN=kube-proxy', 'extendedKeyUsage=clientAuth\n'),
      otherClient: issue('other', '/O=system:node-proxiers/CN=kube-proxy-2', 'extendedKeyUsage=clientAuth\n'),
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
