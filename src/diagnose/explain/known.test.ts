import { expect, test } from 'vitest'
import { nodeView, service, slice } from '../../../test/support/kube-objects.ts'
import { nftablesMode } from '../../modes/nftables/mode.ts'
import { decideAll, isOfService, type Known } from './known.ts'

const known: Known = {
  source: 'a test',
  hasObjects: true,
  mode: nftablesMode,
  nodes: { 4: nodeView({}) },
  machineAddresses: [],
  services: [service()],
  slices: [slice(['10.1.0.1', '10.1.0.2', '10.1.0.3'])],
  allowExternalIPs: true,
  localhostNodePorts: false,
  connectRetry: true,
  ejected: new Map([
    ['10.1.0.2:8080', 'refused'],
    ['10.1.0.3:8080', 'silent'],
  ]),
  otherNodes: [],
  pods: [],
}

test('decideAll() leaves out what the proxy has ejected, and no more than it does', () => {
  const view = decideAll(known, 4)?.model.view('default/web')
  expect(view?.backends.map(({ ip }) => ip)).toEqual(['10.1.0.1', '10.1.0.3'])
  expect(view?.ejected?.map(({ ip }) => ip)).toEqual(['10.1.0.2'])
})

test('decideAll() leaves out nothing of services whose connections are not tried again', () => {
  const view = decideAll({ ...known, connectRetry: false }, 4)?.model.view('default/web')
  expect(view?.backends).toHaveLength(3)
})

test.each([
  ['Service default/web', true],
  ['Annotations of Service default/web', true],
  ['Service port default/web', true],
  ['Service port default/web:http', true],
  ['Service port default/web-late', false],
  ['Service default/website', false],
])('problems of %s are those of default/web: %s', (object, expected) => {
  expect(isOfService(object, 'default/web')).toBe(expected)
})
