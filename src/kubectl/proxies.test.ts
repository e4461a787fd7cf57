import { expect, test } from 'vitest'
import { type Pod, proxiesByNode } from './proxies.ts'

function aPod(name: string, label: string, image: string, isReady: boolean, more: Partial<Pod['spec']> = {}): Pod {
  return {
    metadata: { namespace: 'kube-system', name, labels: { 'k8s-app': label } },
    spec: {
      nodeName: 'node-1',
      containers: [
        { name: 'side', image: 'x' },
        { name: 'kube-proxy', image },
      ],
      ...more,
    },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
      containerStatuses: [{ name: 'kube-proxy', restartCount: 2 }],
    },
  }
}

test('the pod of each node, and whose program it runs', () => {
  const found = proxiesByNode([
    aPod('a', 'kube-proxy', 'registry.k8s.io/kube-proxy:v1.37.0', true),
    aPod('b', 'kube-proxy-ts', 'mirror/proxy:1', true, { nodeName: 'node-2' }),
    aPod('c', 'kube-proxy', 'mirror/kube-proxy-ts:1', true, { nodeName: 'node-3' }),
    aPod('pending', 'kube-proxy-ts', 'x', false, { containers: [] }),
  ])
  expect([...found].map(([node, { name, kind }]) => [node, name, kind])).toEqual([
    ['node-1', 'a', 'kube-proxy'],
    ['node-2', 'b', 'kube-proxy-ts'],
    ['node-3', 'c', 'kube-proxy-ts'],
  ])
  expect(found.get('node-1')).toMatchObject({ container: 'kube-proxy', isReady: true, restarts: 2 })
})

test('while one is replaced, the one that is ready', () => {
  const found = proxiesByNode([aPod('old', 'kube-proxy', 'go', true), aPod('new', 'kube-proxy-ts', 'ts', false)])
  expect(found.get('node-1')!.name).toBe('old')
})
