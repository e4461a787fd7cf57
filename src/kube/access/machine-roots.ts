// The authorities that this machine trusts, from the same files as Go: for a kubeconfig without a certificate authority.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { secure } from '../../lib/http.ts'

/** The first existing file: of Debian, Fedora, openSUSE, OpenELEC, Red Hat and Alpine. SSL_CERT_FILE replaces them. */
const FILES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/** SSL_CERT_DIR, separated by colons, replaces both. */
const FOLDERS = ['/etc/ssl/certs', '/etc/pki/tls/certs']

const CERTIFICATE = /-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs

type Env = Readonly<Record<string, string | undefined>>

/** In PEM, without duplicates. Node's own where the machine has none, as in a small image. */
export function rootsOfMachine(env: Env = process.env): readonly string[] {
  const files = env['SSL_CERT_FILE'] ? [env['SSL_CERT_FILE']] : FILES
  const folders = env['SSL_CERT_DIR'] ? env['SSL_CERT_DIR'].split(':') : FOLDERS
  const file = files.map(readText).find((text) => text !== undefined)
  const texts = [file, ...folders.flatMap(filesOf).map(readText)]
  const found = new Set(texts.flatMap((text) => text?.match(CERTIFICATE) ?? []))
  return found.size > 0 ? [...found] : secure.tls.rootCertificates
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return undefined
  }
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder).map((name) => join(folder, name))
  } catch {
    return []
  }
}
