import { expect, test } from 'vitest'
import { withoutNoise } from './sysdump.ts'

test('values of environment variables and copies of the object are left out', () => {
  const pod = {
    metadata: { managedFields: [1], annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', a: 'b' } },
    spec: {
      containers: [
        {
          env: [
            { name: 'A', value: 'x' },
            { name: 'B', valueFrom: { fieldRef: {} } },
          ],
        },
      ],
    },
  }
  expect(withoutNoise(pod)).toEqual({
    metadata: { annotations: { a: 'b' } },
    spec: { containers: [{ env: [{ name: 'A' }, { name: 'B', valueFrom: { fieldRef: {} } }] }] },
  })
})
