import { expect, test } from 'vitest'
import type { Container, Pod } from './apiserver/objects/pod.ts'
import { podEnvironment, podIdentity, podPorts } from './pod-environment.ts'

function aPod(containers: Partial<Container>[], spec: Partial<Pod['spec']> = {}): Pod {
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { name: 'web-1', namespace: 'shop', uid: 'u1', labels: { 'app.kubernetes.io/name': 'web' } },
    spec: { nodeName: 'node-2', containers: containers.map((one) => ({ name: 'c', ...one })), ...spec },
    status: { hostIP: '172.30.0.12' },
  }
}

test('podPorts() has every containerPort once, of all containers and protocols', () => {
  const ports = [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }]
  expect(podPorts(aPod([{ ports }, { ports: [{ containerPort: 9 }] }, {}]))).toEqual([80, 53, 9])
})

test('podEnvironment() fills in fields of the pod and variables that came before', () => {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const env = [
    field('POD', 'metadata.name'),
    field('NODE', 'spec.nodeName'),
    field('IPS', 'status.podIPs'),
    field('HOST', 'status.hostIP'),
    field('APP', "metadata.labels['app.kubernetes.io/name']"),
    field('NOTHING', 'metadata.nothing'),
    { name: 'ALL', value: '$(POD) on $(NODE), not $(LATER)' },
    { name: 'LATER', value: 'x' },
  ]
  expect(podEnvironment(aPod([{ env }]), ['10.244.2.2', 'fd00::2'])).toEqual({
    HOSTNAME: 'web-1',
    POD: 'web-1',
    NODE: 'node-2',
    IPS: '10.244.2.2,fd00::2',
    HOST: '172.30.0.12',
    APP: 'web',
    NOTHING: '',
    ALL: 'web-1 on node-2, not $(LATER)',
    LATER: 'x',
  })
})

test('podIdentity() takes the message and the host name from the pod', () => {
  const runtime = { key: 'shop/web-1', uid: 'u1', nodeName: 'node-2', ips: ['10.244.2.2'], hostNetwork: false }
  const env = [{ name: 'MESSAGE', value: 'viola' }]
  expect(podIdentity({ ...runtime, pod: aPod([{ env }], { hostname: 'other' }) })).toMatchObject({
    message: 'viola',
    hostname: 'other',
    namespace: 'shop',
    node: 'node-2',
  })
  expect(podIdentity({ ...runtime, pod: aPod([{}]) })).toMatchObject({ message: 'hello', hostname: 'web-1' })
})
