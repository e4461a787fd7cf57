import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { rootsOfMachine } from './machine-roots.ts'

const pem = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}\n-----END CERTIFICATE-----`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'machine-roots-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function write(path: string, text: string): string {
  const file = join(folder, path)
  mkdirSync(join(file, '..'), { recursive: true })
  writeFileSync(file, text)
  return file
}

test('SSL_CERT_FILE and all files of SSL_CERT_DIR are read, and each certificate is named once', () => {
  const file = write('bundle.pem', `Subject: A\n${pem('a')}\n${pem('b')}\n`)
  write('one/b.0', pem('b'))
  write('one/c.0', `${pem('c')}\n`)
  write('one/readme', 'no certificate')
  write('two/d.0', pem('d'))
  const env = { SSL_CERT_FILE: file, SSL_CERT_DIR: `${folder}/one:${folder}/two:${folder}/nowhere` }
  expect(rootsOfMachine(env)).toEqual(['a', 'b', 'c', 'd'].map(pem))
})

test('without a certificate on the machine, those of Node are trusted', () => {
  const env = { SSL_CERT_FILE: `${folder}/nowhere`, SSL_CERT_DIR: folder }
  expect(rootsOfMachine(env)).toBe(rootCertificates)
})
