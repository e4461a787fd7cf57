import { expect, test } from 'vitest'
import { makeSnapshot } from '../../../../test/support/ui-snapshots.ts'
import type { Action } from '../../protocol.ts'
import { undoOf } from './undo.ts'

const snapshot = makeSnapshot()
const pod = snapshot.pods[0]!.name
const service = { namespace: 'default', service: snapshot.services[0]!.name }
const load = { from: 'outside', to: 'default/whoami', perSecond: 10 }

test.for<[Action, Action | null]>([
  [
    { action: 'fail', namespace: 'default', pod, how: 'die' },
    { action: 'fail', namespace: 'default', pod, how: 'none' },
  ],
  [{ action: 'fail', namespace: 'default', pod, how: 'none' }, null],
  [
    { action: 'scale', namespace: 'default', deployment: 'whoami', replicas: 9 },
    { action: 'scale', namespace: 'default', deployment: 'whoami', replicas: 3 },
  ],
  [
    { action: 'policy', ...service, field: 'internalTrafficPolicy', value: 'Local' },
    { action: 'policy', ...service, field: 'internalTrafficPolicy', value: 'Cluster' },
  ],
  [
    { action: 'connect-retry', ...service, value: 'on' },
    { action: 'connect-retry', ...service, value: 'off' },
  ],
  [
    { action: 'balance', ...service, value: 'hash-client' },
    { action: 'balance', ...service, value: 'random' },
  ],
  [
    { action: 'affinity', ...service, value: 'ClientIP' },
    { action: 'affinity', ...service, value: 'None' },
  ],
  [
    { action: 'mode', node: 'node-1', mode: 'iptables' },
    { action: 'mode', node: 'node-1', mode: 'nftables' },
  ],
  [{ action: 'api-server-away' }, { action: 'api-server-back' }],
  [{ action: 'load', ...load }, { action: 'load-end' }],
  // The proxy puts its rules back itself.
  [{ action: 'flush', node: 'node-1' }, null],
])('%j is undone by %j', ([action, undo]) => {
  expect(undoOf(action, snapshot)).toEqual(undo)
})
