import { expect, it } from 'vitest'
import { BackendList } from '../../../model/backend-list.ts'
import type { ServicePortView } from '../../../model/types.ts'
import { isServiceChain, ServiceNames } from './names.ts'

function aPort(name: string): ServicePortView {
  return {
    name,
    namespace: '',
    service: '',
    portName: '',
    protocol: 'TCP',
    frontends: [],
    lists: {},
    backends: BackendList.none,
    serving: [],
  }
}

// What operators see in their clusters.
it('ServiceNames are those of kube-proxy', () => {
  const names = new ServiceNames(aPort('ns1/svc1:p80'))
  expect(names.cluster).toBe('KUBE-SVC-XPGD46QRK7WJZT7O')
  expect(names.local).toBe('KUBE-SVL-XPGD46QRK7WJZT7O')
  expect(names.external).toBe('KUBE-EXT-XPGD46QRK7WJZT7O')
  expect(names.firewall).toBe('KUBE-FW-XPGD46QRK7WJZT7O')
  expect(names.endpoint('10.180.0.1:80')).toBe('KUBE-SEP-SXIVWICOYRO3J4NJ')
  expect(new ServiceNames(aPort('default/kubernetes:https')).cluster).toBe('KUBE-SVC-NPX46M4PTMTKRN6Y')
})

it('isServiceChain() knows the chains of services, old ones too, and no others', () => {
  expect(
    ['KUBE-SVC-X', 'KUBE-SVL-X', 'KUBE-EXT-X', 'KUBE-FW-X', 'KUBE-SEP-X', 'KUBE-XLB-X'].every(isServiceChain),
  ).toBe(true)
  expect(['KUBE-SERVICES', 'KUBE-FIREWALL', 'CNI-SVC-X', 'KUBE-KUBELET-CANARY'].some(isServiceChain)).toBe(false)
})
