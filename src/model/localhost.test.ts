import { describe, expect, test } from 'vitest'
import { nodeView, service, slice } from '../../test/support/kube-objects.ts'
import { isRefusedOnLocalhost, planLocalhostListener } from './localhost.ts'
import { ProblemLog } from './problems.ts'
import { ServiceModel } from './service-model.ts'
import type { LocalhostNodePorts } from './types.ts'

const port = { nodePort: 30_080 }

function listenerOf(wish: Parameters<typeof service>[0], endpoints = ['10.64.7.1', '10.64.7.2'], served = true) {
  const node = nodeView(served ? { localhostNodePorts: 'served by listeners' } : {})
  const model = new ServiceModel({ node, problems: new ProblemLog(() => {}), allowExternalIPs: true, startedMs: 0 })
  model.setService(service({ type: 'NodePort', ports: [port], ...wish }))
  const elsewhere = endpoints.map((address) => ({ address, nodeName: 'elsewhere' }))
  model.setSlice(slice(elsewhere))
  model.takeChanges()
  const [view] = [...model.views()]
  const listener = planLocalhostListener(node, view!)
  return listener && { ...listener, backends: [...listener.backends].map(({ ip }) => ip) }
}

describe('planLocalhostListener()', () => {
  test('listens for a node port that has endpoints, and with its affinity', () => {
    const expected = { protocol: 'TCP', port: 30_080, backends: ['10.64.7.1', '10.64.7.2'], affinitySeconds: undefined }
    expect(listenerOf({})).toEqual(expected)
    expect(listenerOf({ sessionAffinity: 'ClientIP', affinityTimeoutSeconds: 60 })).toEqual({
      ...expected,
      affinitySeconds: 60,
    })
  })

  test('has all endpoints with externalTrafficPolicy Local, as the node itself does', () => {
    expect(listenerOf({ externalTrafficPolicy: 'Local' })?.backends).toEqual(['10.64.7.1', '10.64.7.2'])
  })

  test('does not listen without endpoints, without a node port, for SCTP, nor where it was not asked to', () => {
    expect(listenerOf({}, [])).toBeUndefined()
    expect(listenerOf({ ports: [{}] })).toBeUndefined()
    expect(listenerOf({ ports: [{ ...port, protocol: 'SCTP' }] })).toBeUndefined()
    expect(listenerOf({}, undefined, false)).toBeUndefined()
  })
})

test.each<[LocalhostNodePorts | undefined, boolean[]]>([
  ['served by listeners', [false, false, true]],
  ['refused', [true, true, true]],
  [undefined, [false, false, false]],
])('where node ports on localhost are %s, rules refuse what is not relayed', (localhostNodePorts, refused) => {
  const node = nodeView(localhostNodePorts === undefined ? {} : { localhostNodePorts })
  expect((['TCP', 'UDP', 'SCTP'] as const).map((protocol) => isRefusedOnLocalhost(node, protocol))).toEqual(refused)
})
