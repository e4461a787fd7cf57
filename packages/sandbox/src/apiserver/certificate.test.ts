import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { issueAuthority, issueServing } from './certificate.ts'

describe('issueServing()', () => {
  const now = Date.now()
  const authority = issueAuthority(now)
  const root = new X509Certificate(authority.certificate)
  const leaf = new X509Certificate(issueServing(authority, ['127.0.0.1', 'fd00::1', 'localhost'], now).certificate)

  it('signs with the authority', () => {
    expect(root.ca).toBe(true)
    expect(leaf.ca).toBe(false)
    expect(leaf.checkIssued(root)).toBe(true)
    expect(leaf.verify(root.publicKey)).toBe(true)
    expect(leaf.verify(new X509Certificate(issueAuthority(now).certificate).publicKey)).toBe(false)
  })

  it('names the addresses and hosts, and no others', () => {
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1')
    expect(leaf.checkIP('fd00::1')).toBe('fd00::1')
    expect(leaf.checkHost('localhost')).toBe('localhost')
    expect(leaf.checkIP('127.0.0.2')).toBeUndefined()
    expect(leaf.checkHost('example.com')).toBeUndefined()
  })

  it('is valid now, and for years', () => {
    expect(Date.parse(leaf.validFrom)).toBeLessThan(now)
    expect(Date.parse(leaf.validTo)).toBeGreaterThan(now + 9 * 365 * 24 * 3600 * 1000)
  })
})
