// Certificates for the API server: a certificate authority of its own, and certificates for the addresses it listens on. Node
// signs but does not issue, so the X.509 structure (RFC 5280) is written here in its encoding (DER, X.690), as far as it is
// needed. Libraries that do so take longer to load than the rest of the API server to start.

import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { Buffer } from 'node:buffer'
import { isIP } from 'node:net'
import { parseIp } from '../../../../src/lib/ip.ts'

export interface KeyAndCertificate {
  /** PEM, PKCS #8. */
  readonly key: string
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

const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  objectId: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  sequence: 0x30,
  set: 0x31,
  dnsName: 0x82,
  ipAddress: 0x87,
  version: 0xa0,
  extensions: 0xa3,
} as const

const authorityName = 'kube-proxy-sandbox'
const yearMs = 365 * 24 * 3600 * 1000
/** Clocks of containers and their hosts differ a little. */
const earlierMs = 3600 * 1000

export function issueAuthority(nowMs: number): KeyAndCertificate {
  const key = newKey()
  const extensions = [
    extension(oid.basicConstraints, sequence(der(tag.boolean, Buffer.of(0xff))), 'critical'),
    // To sign certificates; the first byte is the number of bits that are not used.
    extension(oid.keyUsage, der(tag.bitString, Buffer.of(2, 0x04)), 'critical'),
  ]
  return issue({ key, name: authorityName, extensions, nowMs }, key)
}

/** A certificate for a server that is reached under these names and addresses. */
export function issueServing(authority: KeyAndCertificate, hosts: readonly string[], nowMs: number): KeyAndCertificate {
  const extensions = [
    // To sign.
    extension(oid.keyUsage, der(tag.bitString, Buffer.of(7, 0x80)), 'critical'),
    extension(oid.extendedKeyUsage, sequence(objectId(oid.serverAuth))),
    extension(oid.subjectAltName, sequence(...hosts.map(alternativeName))),
  ]
  return issue({ key: newKey(), name: 'kube-apiserver', extensions, nowMs }, createPrivateKey(authority.key))
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

function issue({ key, name, extensions, nowMs }: Subject, issuerKey: KeyObject): KeyAndCertificate {
  const algorithm = sequence(objectId(oid.ecdsaWithSha256))
  const serial = randomBytes(16)
  // Positive, and without a leading zero byte.
  serial[0] = (serial[0]! & 0x7f) | 0x40
  const toBeSigned = sequence(
    der(tag.version, der(tag.integer, Buffer.of(2))),
    der(tag.integer, serial),
    algorithm,
    distinguishedName(authorityName),
    sequence(utcTime(nowMs - earlierMs), utcTime(nowMs + 10 * yearMs)),
    distinguishedName(name),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
    der(tag.extensions, sequence(...extensions)),
  )
  const signature = der(tag.bitString, Buffer.of(0), sign('sha256', toBeSigned, issuerKey))
  const certificate = sequence(toBeSigned, algorithm, signature).toString('base64')
  const lines = certificate.match(/.{1,64}/g)!.join('\n')
  return {
    key: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  }
}

function distinguishedName(name: string): Buffer {
  return sequence(der(tag.set, sequence(objectId(oid.commonName), der(tag.utf8String, Buffer.from(name)))))
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  const isCritical = critical === undefined ? [] : [der(tag.boolean, Buffer.of(0xff))]
  return sequence(objectId(id), ...isCritical, der(tag.octetString, value))
}

function alternativeName(host: string): Buffer {
  if (isIP(host) === 0) return der(tag.dnsName, Buffer.from(host))
  return der(tag.ipAddress, Buffer.from(parseIp(host) ?? '', 'latin1'))
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(tag.sequence, ...parts)
}

/** Tag, length, content. */
function der(tagNumber: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts)
  const { length } = content
  const head = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.of(tagNumber, ...head), content])
}

/** `1.2.840.10045.4.3.2`: the first two numbers share a byte, the others take seven bits per byte. */
function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return der(tag.objectId, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]))
}

function base128(value: number): number[] {
  const groups = [value & 0x7f]
  for (let left = value >>> 7; left > 0; left >>>= 7) groups.unshift((left & 0x7f) | 0x80)
  return groups
}

/** `YYMMDDhhmmssZ`, good until 2049. */
function utcTime(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\D/g, '')
  return der(tag.utcTime, Buffer.from(`${digits.slice(2, 14)}Z`))
}
