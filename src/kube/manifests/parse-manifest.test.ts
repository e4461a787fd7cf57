import { describe, expect, test } from 'vitest'
import { parseManifest } from './parse-manifest.ts'

const good = `\
# A comment, then two documents.
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  clusterIP: 10.0.0.1
  ports:
    - port: 80
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: web-1
  labels: { kubernetes.io/service-name: web }
addressType: IPv4
endpoints:
  - addresses: [10.1.0.1]
ports:
  - port: 8080
`

function remarksOf(text: string): string[] {
  return parseManifest(text).remarks.map(({ severity, line, text: remark }) => `${severity} ${line} ${remark}`)
}

describe('parseManifest()', () => {
  test('reads all documents of a file, each with its line', () => {
    const { objects, remarks } = parseManifest(good)
    expect(remarks).toEqual([])
    expect(objects.map(({ kind, line }) => [kind, line])).toEqual([
      ['Service', 2],
      ['EndpointSlice', 11],
    ])
  })

  test('reads JSON and Lists, also one in another', () => {
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec: { clusterIP: 'None' } }
    const list = { apiVersion: 'v1', kind: 'List', items: [service, { kind: 'ServiceList', items: [service] }] }
    expect(parseManifest(JSON.stringify(list)).objects).toHaveLength(2)
  })

  test('says nothing of an empty file, nor of empty documents', () => {
    expect(parseManifest('')).toEqual({ objects: [], remarks: [] })
    expect(parseManifest('---\n# nothing\n---\n')).toEqual({ objects: [], remarks: [] })
  })

  test('one error leaves none of the objects', () => {
    const { objects, remarks } = parseManifest(good.replace('port: 80\n', 'port: eighty\n'))
    expect(objects).toEqual([])
    expect(remarks).toHaveLength(1)
  })

  test.each([
    ['bad syntax', 'kind: Service\nspec: {a: 1\nmetadata: x', /^error 3 .+/],
    ['no object', '- 1', /^error 1 must be an API object$/],
    ['no kind', 'metadata: {}', /^error 1 kind: required$/],
    [
      'another version',
      good.replace('v1\nkind: Service', 'v2\nkind: Service'),
      /^error 2 apiVersion: must be v1 for a Service, not "v2"$/,
    ],
    ['no name', good.replace('  name: web\n', '  uid: x\n'), /^error 5 metadata.name: required$/],
    [
      'a bad address',
      good.replace('10.0.0.1', '10.0.0.256'),
      /^error 7 spec.clusterIP: must be an IP address or None, not "10.0.0.256"$/,
    ],
    [
      'a port that is none',
      good.replace('port: 80\n', 'port: 80000\n'),
      /^error 9 spec.ports\[0\].port: must be a whole number from 1 to 65535, not 80000$/,
    ],
    [
      'no cluster IP',
      good.replace('  clusterIP: 10.0.0.1\n', ''),
      /^error 7 spec.clusterIP: required: there is no API server/,
    ],
    [
      'no node port',
      good.replace('  ports:', '  type: NodePort\n  ports:'),
      /^error 10 spec.ports\[0\].nodePort: required: there is no API server/,
    ],
    [
      'no service name',
      good.replace('{ kubernetes.io/service-name: web }', '{}'),
      /^error 15 metadata.labels\["kubernetes.io\/service-name"\]: required/,
    ],
    [
      'the other family',
      good.replace('[10.1.0.1]', '[10.1.0.1, "fd00::1"]'),
      /^error 18 endpoints\[0\].addresses\[1\]: must be an IPv4 address, not "fd00::1"$/,
    ],
    [
      'a list that is none',
      good.replace('[10.1.0.1]', '10.1.0.1'),
      /^error 18 endpoints\[0\].addresses: must be a list, not "10.1.0.1"$/,
    ],
    [
      'a bad policy',
      good.replace('  ports:', '  externalTrafficPolicy: local\n  ports:'),
      /^error 8 spec.externalTrafficPolicy: must be one of Cluster, Local, not "local"$/,
    ],
  ])('tells the line and the reason of %s', (_, text, remark) => {
    expect(remarksOf(text)).toEqual([expect.stringMatching(remark)])
  })

  test('names what a mistyped field probably meant, and goes on', () => {
    const text = good.replace('  ports:', '  sessionAfinity: ClientIP\n  ports:')
    expect(remarksOf(text)).toEqual(['warning 8 spec.sessionAfinity: unknown field, perhaps sessionAffinity is meant'])
    expect(parseManifest(text).objects).toHaveLength(2)
  })

  test('passes over kinds that a proxy has no use for', () => {
    expect(remarksOf('kind: Deployment\nmetadata: {name: x}')).toEqual([
      'warning 1 kind: a proxy has no use for a Deployment, passing over it',
    ])
  })

  test('reports all that is wrong at once', () => {
    const text = good.replace('10.0.0.1', 'x').replace('port: 80\n', 'port: 0\n').replace('IPv4', 'ipv4')
    expect(remarksOf(text)).toHaveLength(3)
  })

  test('refuses aliases that blow up', () => {
    let text = 'a: &a [1,1,1,1,1,1,1,1,1,1]\n'
    for (let i = 0; i < 9; i++) text += `${'bcdefghij'[i]}: &${'bcdefghij'[i]} [${`*${'abcdefghi'[i]},`.repeat(9)}1]\n`
    expect(remarksOf(text)).toEqual([expect.stringMatching(/^error 1 .*alias/i)])
  })
})
