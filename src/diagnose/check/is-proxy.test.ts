import { expect, test } from 'vitest'
import { isProxy } from './is-proxy.ts'

test.each([
  '/usr/local/bin/kube-proxy --config=/var/lib/kube-proxy/config.conf',
  'kube-proxy',
  '/usr/bin/node /usr/lib/kube-proxy-ts/kube-proxy.cjs --proxy-mode=nftables',
  'node --use-openssl-ca /src/dist/bundle/kube-proxy.cjs --v=2',
  'node --max-semi-space-size=2 /src/dist/src/cli/main.js --proxy-mode=nftables',
  'node /usr/local/bin/kube-proxy',
])('a proxy: %s', (command) => {
  expect(isProxy(command.split(' '))).toBe(true)
})

test.each([
  '',
  'node',
  'node server.js --name /kube-proxy-exporter.cjs',
  'kube-proxy check',
  'node /src/dist/src/cli/main.js sandbox',
  'node /usr/lib/kube-proxy-ts/kube-proxy.cjs top',
  'vim /etc/kube-proxy',
  'kube-proxy-exporter --v=2',
])('none: %s', (command) => {
  expect(isProxy(command.split(' '))).toBe(false)
})
