// Certificates for the API server: a certificate authority of its own, and certificates for the addresses it listens on.
// Node signs but does not issue, so the X.509 structure (RFC 5280) is written here, as far as it is needed.

import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'
import { ipBytes } from '../../../../src/lib/ip.ts'
import { Buffer } from 'node:buffer'
import {
  bitString,
  boolean,
  context,
  integer,
  objectId,
  octetString,
  sequence,
  set,
  utcTime,
  utf8String,
} from './der.ts'
import type { KeyObject } from 'node:crypto'

export interface KeyAndCertificate {
  /** PEM, PKCS #8. */
  readonly key: string
  /** PEM. */
  readonly certificate: string
}

const oid = {
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  commonName: '2.5.4.3',
  basicConstraints: '2.5.29.19',
  keyUsage: '2.5.29.15',
  extendedKeyUsage: '2.5.29.37',
  subjectAltName: '2.5.29.17',
  serverAuth: '1.3.6.1.5.5.7.3.1',
} as const

/** The bits of keyUsage, the first one highest. */
const KEY_USAGE_SIGN_CERTIFICATES = 0x04
const KEY_USAGE_SIGN = 0x80

const yearMs = 365 * 24 * 3600 * 1000
/** Clocks of containers and their hosts differ a little. */
const earlierMs = 3600 * 1000

export function issueAuthority(nowMs: number): KeyAndCertificate {
  const key = newKey()
  const name = 'kube-proxy-sandbox'
  const extensions = [
    extension(oid.basicConstraints, sequence(boolean(true)), 'critical'),
    extension(oid.keyUsage, bitString(Buffer.of(KEY_USAGE_SIGN_CERTIFICATES), 2), 'critical'),
  ]
  return issue({ key, name, extensions, nowMs }, { key, name })
}

/** A certificate for a server that is reached under these names and addresses. */
export function issueServing(authority: KeyAndCertificate, hosts: readonly string[], nowMs: number): KeyAndCertificate {
  const extensions = [
    extension(oid.keyUsage, bitString(Buffer.of(KEY_USAGE_SIGN), 7), 'critical'),
    extension(oid.extendedKeyUsage, sequence(objectId(oid.serverAuth))),
    extension(oid.subjectAltName, sequence(...hosts.map(alternativeName))),
  ]
  const issuer = { key: createPrivateKey(authority.key), name: 'kube-proxy-sandbox' }
  return issue({ key: newKey(), name: 'kube-apiserver', extensions, nowMs }, issuer)
}

function newKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

interface Subject {
  readonly key: KeyObject
  readonly name: string
  readonly extensions: readonly Buffer[]
  readonly nowMs: number
}

function issue(subject: Subject, issuer: { key: KeyObject; name: string }): KeyAndCertificate {
  const algorithm = sequence(objectId(oid.ecdsaWithSha256))
  const serial = randomBytes(16)
  // Positive, and without a leading zero byte.
  serial[0] = (serial[0]! & 0x7f) | 0x40
  const toBeSigned = sequence(
    context(0, integer(Buffer.of(2))),
    integer(serial),
    algorithm,
    distinguishedName(issuer.name),
    sequence(utcTime(subject.nowMs - earlierMs), utcTime(subject.nowMs + 10 * yearMs)),
    distinguishedName(subject.name),
    createPublicKey(subject.key).export({ type: 'spki', format: 'der' }),
    context(3, sequence(...subject.extensions)),
  )
  const signature = sign('sha256', toBeSigned, issuer.key)
  return {
    key: subject.key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: pem('CERTIFICATE', sequence(toBeSigned, algorithm, bitString(signature, 0))),
  }
}

function distinguishedName(name: string): Buffer {
  return sequence(set(sequence(objectId(oid.commonName), utf8String(name))))
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  const parts = [objectId(id), ...(critical === undefined ? [] : [boolean(true)]), octetString(value)]
  return sequence(...parts)
}

const GENERAL_NAME_DNS = 0x82
const GENERAL_NAME_IP = 0x87

function alternativeName(host: string): Buffer {
  const bytes = isIP(host) === 0 ? Buffer.from(host) : Buffer.from(ipBytes(host), 'latin1')
  return Buffer.concat([Buffer.of(isIP(host) === 0 ? GENERAL_NAME_DNS : GENERAL_NAME_IP, bytes.length), bytes])
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
