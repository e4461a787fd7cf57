import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { aDeployment, aReplicaSet, startMs } from '../../../../test/support/sandbox-objects.ts'
import { planDeployment, rollingLimits, templateHash } from './deployment-plan.ts'
import type { Deployment, ReplicaSet } from '../apiserver/objects/workloads.ts'
import type { DeploymentPlan } from './deployment-plan.ts'

const plan = (deployment: Deployment, ...sets: ReplicaSet[]): DeploymentPlan =>
  planDeployment(deployment, sets, startMs)
const steps = ({ scale }: DeploymentPlan) => scale.map(({ set, to }) => `${set.metadata.name} -> ${to}`)

describe('planDeployment()', () => {
  it('starts with a set of all replicas, named by the template', () => {
    const deployment = aDeployment()
    expect(plan(deployment).create).toEqual({
      name: `web-${templateHash(deployment.spec.template)}`,
      hash: templateHash(deployment.spec.template),
      replicas: 4,
    })
    expect(plan(deployment).revision).toBe(1)
  })

  it('finds the set of its template whatever the hash', () => {
    const set = aReplicaSet({ replicas: 4 })
    expect(plan(aDeployment(), set)).toMatchObject({ create: undefined, current: set, scale: [] })
  })

  it('surges by a quarter for a new template', () => {
    const deployment = aDeployment({}, 'web:2')
    expect(plan(deployment, aReplicaSet({ replicas: 4 })).create).toMatchObject({ replicas: 1 })
    expect(plan(deployment, aReplicaSet({ replicas: 4 })).revision).toBe(2)
  })

  it('takes as many old pods away as may be missing, then waits for new ones', () => {
    const deployment = aDeployment({}, 'web:2')
    const old = aReplicaSet({ replicas: 4 })
    const unready = aReplicaSet({ replicas: 1, available: 0, image: 'web:2', revision: 2 })
    expect(steps(plan(deployment, old, unready))).toEqual(['web-web-1 -> 3'])
    const fewer = aReplicaSet({ replicas: 3 })
    const two = aReplicaSet({ replicas: 2, available: 0, image: 'web:2', revision: 2 })
    expect(steps(plan(deployment, fewer, two))).toEqual([])
  })

  it('removes old pods that do not serve before any that do', () => {
    const deployment = aDeployment({}, 'web:3')
    const broken = aReplicaSet({ replicas: 2, available: 0, image: 'web:2', revision: 2 })
    const good = aReplicaSet({ replicas: 3 })
    const current = aReplicaSet({ replicas: 0, image: 'web:3', revision: 3 })
    expect(steps(plan(deployment, good, broken, current))).toEqual(['web-web-2 -> 0'])
  })

  it('stops everything before it starts the new pods, with Recreate', () => {
    const deployment = aDeployment({ strategy: { type: 'Recreate' } }, 'web:2')
    const running = plan(deployment, aReplicaSet({ replicas: 4 }))
    expect(running.create).toBeUndefined()
    expect(steps(running)).toEqual(['web-web-1 -> 0'])
    expect(plan(deployment, aReplicaSet({ replicas: 0, pods: 1 })).create).toBeUndefined()
    expect(plan(deployment, aReplicaSet({ replicas: 0 })).create).toMatchObject({ replicas: 4 })
  })

  it('follows the number of replicas, also while it is paused', () => {
    const set = aReplicaSet({ replicas: 4 })
    expect(steps(plan(aDeployment({ replicas: 6 }), set))).toEqual(['web-web-1 -> 6'])
    expect(steps(plan(aDeployment({ replicas: 2 }), set))).toEqual(['web-web-1 -> 2'])
    expect(steps(plan(aDeployment({ replicas: 2, paused: true }, 'web:2'), set))).toEqual(['web-web-1 -> 2'])
    expect(plan(aDeployment({ paused: true }, 'web:2'), set).create).toBeUndefined()
  })

  it('counts a rollback as a new revision', () => {
    const first = aReplicaSet({ replicas: 0 })
    const second = aReplicaSet({ replicas: 4, image: 'web:2', revision: 2 })
    expect(plan(aDeployment(), first, second)).toMatchObject({ current: first, revision: 3 })
  })

  it('forgets the oldest empty sets beyond the limit', () => {
    const sets = [1, 2, 3].map((n) => aReplicaSet({ replicas: 0, image: `web:${n}`, revision: n }))
    const current = aReplicaSet({ replicas: 4, image: 'web:4', revision: 4 })
    const { remove } = plan(aDeployment({ revisionHistoryLimit: 1 }, 'web:4'), ...sets, current)
    expect(remove.map(({ metadata }) => metadata.name)).toEqual(['web-web-1', 'web-web-2'])
  })

  it('says when it is complete, and that it progresses before that', () => {
    const reason = (...sets: ReplicaSet[]) =>
      plan(aDeployment(), ...sets).status.conditions?.map(({ type, status, reason }) => `${type}=${status} ${reason}`)
    expect(reason(aReplicaSet({ replicas: 4 }))).toEqual([
      'Available=True MinimumReplicasAvailable',
      'Progressing=True NewReplicaSetAvailable',
    ])
    expect(reason(aReplicaSet({ replicas: 4, available: 1 }))).toEqual([
      'Available=False MinimumReplicasUnavailable',
      'Progressing=True ReplicaSetUpdated',
    ])
  })

  it('notices that nothing progresses any more', () => {
    const deployment = aDeployment({ progressDeadlineSeconds: 60 })
    const set = aReplicaSet({ replicas: 4, available: 1 })
    deployment.status = planDeployment(deployment, [set], startMs).status
    const later = planDeployment(deployment, [set], startMs + 61_000).status
    expect(later.conditions?.find(({ type }) => type === 'Progressing')).toMatchObject({
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
    })
  })

  it('ends every rollout, never above the surge and never below what must be available', () => {
    const amount = fc.oneof(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 0, max: 100 }).map((n) => `${n}%`),
    )
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), amount, amount, (replicas, maxSurge, maxUnavailable) => {
        const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } }
        const deployment = aDeployment({ replicas, strategy }, 'web:2')
        const limits = rollingLimits(deployment)
        let sets = [aReplicaSet({ replicas })]
        for (let step = 0; step < 100; step++) {
          const next = planDeployment(deployment, sets, startMs)
          if (next.create === undefined && next.scale.length === 0) break
          sets = carryOut(sets, next)
          const total = sets.reduce((sum, { spec }) => sum + spec.replicas!, 0)
          expect(total).toBeLessThanOrEqual(replicas + limits.maxSurge)
          expect(total).toBeGreaterThanOrEqual(replicas - limits.maxUnavailable)
        }
        expect(sets.map(({ spec }) => spec.replicas)).toEqual([0, replicas])
      }),
      { numRuns: 200 },
    )
  })
})

/** Every pod is available as soon as it is wanted. */
function carryOut(sets: readonly ReplicaSet[], { create, scale }: DeploymentPlan): ReplicaSet[] {
  const scaled = sets.map((set) => {
    const to = scale.find((one) => one.set === set)?.to ?? set.spec.replicas!
    const { metadata, spec } = set
    const image = spec.template.spec.containers[0]!.image!
    return aReplicaSet({ replicas: to, image, name: metadata.name, revision: image === 'web:1' ? 1 : 2 })
  })
  return create === undefined
    ? scaled
    : [...scaled, aReplicaSet({ replicas: create.replicas, image: 'web:2', name: create.name, revision: 2 })]
}

describe('rollingLimits()', () => {
  it.each([
    [4, '25%', '25%', 1, 1],
    [10, '25%', '25%', 3, 2],
    [1, '25%', '25%', 1, 0],
    [3, 0, '10%', 0, 1],
    [3, 2, 0, 2, 0],
  ])('of %d replicas, %s and %s: %d more, %d fewer', (replicas, maxSurge, maxUnavailable, more, fewer) => {
    const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } }
    expect(rollingLimits(aDeployment({ replicas, strategy }))).toEqual({ maxSurge: more, maxUnavailable: fewer })
  })
})
