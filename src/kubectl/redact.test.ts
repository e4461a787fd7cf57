import { expect, test } from 'vitest'
import { redact } from './redact.ts'

const JWT = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl-_x'
const KEY = '-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA\nabc\n-----END RSA PRIVATE KEY-----'

test.each([
  ['a token of a service account', JWT, `Authorization: ${JWT}`],
  ['a private key', 'MIIEowIBAAKCAQEA', `before\n${KEY}\nafter`],
  ['a private key that is cut off', 'MIIEowIBAAKCAQEA', KEY.slice(0, 50)],
  ['a bearer token', 'abcdefgh12345678', 'Authorization: Bearer abcdefgh12345678'],
  ['basic authentication', 'dXNlcjpwYXNz', 'Authorization: Basic dXNlcjpwYXNz'],
  ['a bootstrap token', 'abcdef.0123456789abcdef', 'kubeadm join --token abcdef.0123456789abcdef'],
  ['a password in a URL', 'hunter2', 'proxy http://me:hunter2@proxy:3128/'],
  ['client-key-data of a kubeconfig', 'LS0tLS1CRUdJ', 'users:\n- user:\n    client-key-data: LS0tLS1CRUdJ\n'],
  ['client-certificate-data', 'LS0tLS1CRUdJ', 'client-certificate-data: "LS0tLS1CRUdJ"'],
  ['a token in YAML', 'not.a.jwt', '    token: not.a.jwt'],
  ['a token in JSON', 'plain-token', '{"user":{"token":"plain-token"}}'],
  ['a token in JSON in JSON', 'plain-token', '{"config":"{\\"token\\":\\"plain-token\\"}"}'],
  ['a password with blanks', 'two words', 'password: "two words"'],
  ['a password in single quotes', 'it is', "password: 'it is'"],
  ['an environment variable', 'hunter2', 'AWS_SECRET_ACCESS_KEY=hunter2'],
  ['an id token', 'xyz', 'id-token: xyz'],
])('%s is left out', (_, secret, text) => {
  const clean = redact(text)
  expect(clean).not.toContain(secret)
  expect(clean).toContain('<left out>')
})

test.each([
  'tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token',
  'kubeconfig: /var/lib/kube-proxy/kubeconfig.conf',
  '"clusterIP":"10.96.0.1","port":443',
  'add element ip kube-proxy service-endpoints { 10.96.0.1 . tcp . 443 . 0 : 172.18.0.2 . 6443 }',
  'kubernetes.io/service-name: web',
  'v1.37.0+ts.0.1.0.g0123456789ab',
])('%s stays', (text) => {
  expect(redact(text)).toBe(text)
})

test('what stands around a secret stays', () => {
  expect(redact('{"token":"x","port":80}')).toBe('{"token":"<left out>","port":80}')
})
