import { expect, test } from 'vitest'
import { nodeView, service, slice } from '../../../../test/support/kube-objects.ts'
import type { Steps } from '../../../lib/steps.ts'
import { BALANCE_ANNOTATION } from '../../../model/balance.ts'
import { ProblemLog } from '../../../model/problems.ts'
import { ServiceModel } from '../../../model/service-model.ts'
import { diffingFragments } from '../../../nftables/diff-fragments.ts'
import { TableState } from '../../../nftables/table-state.ts'
import { nftablesPlanner } from './planner.ts'
import { planFragment, planningFragment } from './service.ts'

const node = nodeView()

function count<T>(steps: Steps<T>): { readonly result: T; readonly pauses: number } {
  for (let pauses = 0; ; pauses++) {
    const { done, value } = steps.next()
    if (done === true) return { result: value, pauses }
  }
}

test('a service port with very many places is planned and compared in steps', () => {
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  const externalIPs = Array.from({ length: 20 }, (_, i) => `203.0.113.${i}`)
  model.setService(service({ externalIPs, annotations: { [BALANCE_ANNOTATION]: 'hash-client' } }))
  model.setSlice(slice(['10.1.0.1', '10.1.0.2']))
  const [view] = [...(model.takeChanges(), model.views())]
  // 8191 for each of 21 frontends.
  const { result: fragment, pauses } = count(planningFragment(node, view!))
  expect(pauses).toBeGreaterThanOrEqual(6)
  expect(planFragment(node, view!)).toEqual(fragment)
  const state = new TableState(nftablesPlanner.base(node))
  const comes = count(diffingFragments([{ before: undefined, after: fragment }], state))
  expect(comes.pauses).toBeGreaterThanOrEqual(8)
  const goes = count(diffingFragments([{ before: fragment, after: undefined }], state))
  expect(goes.pauses).toBeGreaterThanOrEqual(8)
})
