import { expect, test } from 'vitest'
import { planDebugPod } from './debug-pod.ts'

test('the pod has no rights but to read the kernel, and ends by itself', () => {
  const pod = planDebugPod({ node: 'node-1', image: 'i:1', namespace: 'kube-system' }, 'name') as {
    spec: Record<string, unknown> & { containers: { securityContext: object }[] }
  }
  expect(pod.spec).toMatchObject({
    nodeName: 'node-1',
    hostNetwork: true,
    automountServiceAccountToken: false,
    restartPolicy: 'Never',
    activeDeadlineSeconds: 600,
  })
  expect(pod.spec).not.toHaveProperty('volumes')
  expect(pod.spec.containers[0]!.securityContext).toMatchObject({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
  })
})
