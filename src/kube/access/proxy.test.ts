import { describe, expect, test } from 'vitest'
import { proxyFromEnvironment } from './proxy.ts'

describe('proxyFromEnvironment()', () => {
  const proxied = (target: string, env: Record<string, string>): string | undefined =>
    proxyFromEnvironment(new URL(target), env)?.host

  test('takes HTTPS_PROXY for https and HTTP_PROXY for http, in either case', () => {
    expect(proxied('https://api', { HTTPS_PROXY: 'http://p:1', HTTP_PROXY: 'http://q:2' })).toBe('p:1')
    expect(proxied('http://api', { HTTPS_PROXY: 'http://p:1', http_proxy: 'q:2' })).toBe('q:2')
    expect(proxied('https://api', {})).toBeUndefined()
  })

  test('takes proxies that speak TLS or SOCKS5, and refuses others without showing a password', () => {
    expect(proxied('https://api', { HTTPS_PROXY: 'https://p:1' })).toBe('p:1')
    expect(proxied('https://api', { HTTPS_PROXY: 'socks5://me:SECRET@p:1' })).toBe('p:1')
    expect(proxied('https://api', { HTTPS_PROXY: 'socks5h://p' })).toBe('p')
    for (const HTTPS_PROXY of ['socks4://me:SECRET@p:1', 'http://me:SECRET@p:x', 'socks5://']) {
      expect(() => proxied('https://api', { HTTPS_PROXY })).toThrow('Cannot use the proxy of HTTPS_PROXY')
      expect(() => proxied('https://api', { HTTPS_PROXY })).not.toThrow('SECRET')
    }
  })

  test('never sends loopback to a proxy', () => {
    for (const host of ['localhost', '127.0.0.1', '[::1]']) {
      expect(proxied(`https://${host}:6443`, { HTTPS_PROXY: 'http://p:1' })).toBeUndefined()
    }
  })

  test.each([
    ['https://10.96.0.1', '10.96.0.0/12', false],
    ['https://10.96.0.1', '10.0.0.0/16', true],
    ['https://10.96.0.1', '10.96.0.1', false],
    ['https://10.96.0.1:6443', '10.96.0.1:443', true],
    ['https://[fd00::1]:6443', 'fd00::/16', false],
    ['https://[fd00::1]:6443', 'fd00::1', false],
    ['https://api.example.com', 'example.com', false],
    ['https://api.example.com', '.example.com', false],
    ['https://example.com', '.example.com', true],
    ['https://badexample.com', 'example.com', true],
    ['https://api.example.com', ' other , * ', false],
  ])('with a proxy, and %s and NO_PROXY=%s: proxied is %s', (target, noProxy, expected) => {
    expect(proxied(target, { HTTPS_PROXY: 'http://p:1', NO_PROXY: noProxy }) !== undefined).toBe(expected)
  })
})
