import { describe, expect, it } from 'vitest'
import { aPod, startMs } from '../../../../test/support/sandbox-objects.ts'
import { fromMap } from '../apiserver/selectors/label-selector.ts'
import { planReplicas } from './replicas.ts'
import type { PodOptions } from '../../../../test/support/sandbox-objects.ts'
import type { ReplicaOwner } from './replicas.ts'

const object = {
  kind: 'ReplicaSet',
  apiVersion: 'apps/v1',
  metadata: { name: 'web', namespace: 'default', uid: 'owner' },
}
const owner = (replicas: number, options: Partial<ReplicaOwner> = {}): ReplicaOwner => ({
  object,
  replicas,
  minReadySeconds: 0,
  selector: fromMap({ app: 'web' }),
  templateLabels: { app: 'web' },
  ...options,
})
const own = (name: string, options: PodOptions = {}) => aPod({ name, owner: object, ...options })
const names = (pods: readonly { metadata: { name: string } }[]) => pods.map(({ metadata }) => metadata.name)

describe('planReplicas()', () => {
  it('makes what is missing', () => {
    expect(planReplicas(owner(3), [own('a')], startMs)).toMatchObject({ create: 2, remove: [] })
  })

  it('does not count pods that end or have ended', () => {
    const pods = [own('a', { deleting: true }), own('b', { phase: 'Failed' }), own('c')]
    expect(planReplicas(owner(2), pods, startMs)).toMatchObject({ create: 1, status: { replicas: 1 } })
  })

  it('removes first what is missed least', () => {
    const pods = [
      own('old'),
      own('young', { created: '2026-01-01T00:05:00Z' }),
      own('unready', { ready: false }),
      own('pending', { phase: 'Pending', ready: false }),
      own('nowhere', { node: '', phase: 'Pending', ready: false }),
    ]
    const removed = (replicas: number) => names(planReplicas(owner(replicas), pods, startMs).remove)
    expect(removed(4)).toEqual(['nowhere'])
    expect(removed(1)).toEqual(['nowhere', 'pending', 'unready', 'young'])
  })

  it('thins out the node that has most', () => {
    const pods = [own('a', { node: 'node-1' }), own('b', { node: 'node-2' }), own('c', { node: 'node-2' })]
    expect(names(planReplicas(owner(2), pods, startMs).remove)).toEqual(['b'])
  })

  it('adopts pods without an owner, and leaves those of others alone', () => {
    const other = { kind: 'ReplicaSet', metadata: { name: 'x', uid: 'other' } }
    const plan = planReplicas(owner(2), [aPod({ name: 'orphan' }), aPod({ name: 'theirs', owner: other })], startMs)
    expect(names(plan.adopt)).toEqual(['orphan'])
    expect(plan.create).toBe(1)
  })

  it('releases its pods that the selector no longer picks', () => {
    const plan = planReplicas(owner(1), [own('a', { labels: { app: 'debug' } })], startMs)
    expect(names(plan.release)).toEqual(['a'])
    expect(plan.create).toBe(1)
  })

  it('counts ready and available pods, and says when the next becomes available', () => {
    const pods = [own('a'), own('b', { readySince: '2026-01-01T00:00:55Z' }), own('c', { ready: false })]
    const plan = planReplicas(owner(3, { minReadySeconds: 10 }), pods, startMs + 60_000)
    expect(plan.status).toMatchObject({ replicas: 3, readyReplicas: 2, availableReplicas: 1, fullyLabeledReplicas: 3 })
    expect(plan.lookAgainMs).toBe(5000)
  })

  it('does nothing for an owner that goes away', () => {
    const leaving = { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }
    expect(planReplicas(owner(3, { object: leaving }), [own('a')], startMs)).toMatchObject({ create: 0, remove: [] })
  })
})
