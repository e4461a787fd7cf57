import { describe, expect, it } from 'vitest'
import { planIptables } from '../../../../test/support/golden-iptables.ts'
import { applyScript } from '../../../../test/support/apply-script.ts'
import { formatTables } from '../../../iptables/format.ts'
import { Script } from '../../../iptables/script.ts'
import type { Tables } from '../../../iptables/types.ts'
import { planCleanup } from './cleanup.ts'

/** The tables after the cleanup. */
function cleaned(tables: Tables): Tables {
  return applyScript(tables, [...new Script(planCleanup(tables).ops, 'nft').text()].join(''))
}

const empty = applyScript(new Map(), '*mangle\nCOMMIT\n*filter\nCOMMIT\n*nat\nCOMMIT\n')

const FIREWALL = `*filter
:KUBE-FIREWALL - [0:0]
-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
-A INPUT -j KUBE-FIREWALL
-A OUTPUT -j KUBE-FIREWALL
COMMIT
`

describe('planCleanup()', () => {
  it('leaves nothing of ours', async () => {
    expect(formatTables(cleaned(await planIptables(4, [])))).toBe(formatTables(empty))
  })

  it.each([
    ['its canary is there', '*mangle\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n'],
    ['there is a rule that we never write', '*filter\n-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\nCOMMIT\n'],
  ])('leaves the chain that is kubelet’s, with its jumps: %s', async (_, kubelets) => {
    const tables = applyScript(await planIptables(4, []), kubelets)
    const expected = applyScript(applyScript(empty, FIREWALL), kubelets)
    expect(formatTables(cleaned(tables))).toBe(formatTables(expected))
  })

  it('leaves the rule that makes route_localnet safe where that stays, and the note that it is to be taken back', async () => {
    const note = '*filter\n:KUBE-PROXY-LOCALNET - [0:0]\nCOMMIT\n'
    const tables = applyScript(await planIptables(4, []), note)
    const { ops } = planCleanup(tables, 'keep')
    const left = applyScript(tables, [...new Script(ops, 'nft').text()].join(''))
    expect(formatTables(left)).toBe(formatTables(applyScript(applyScript(empty, FIREWALL), note)))
  })

  it('removes what old versions and other modes left', () => {
    const old = `*nat
:KUBE-MARK-DROP - [0:0]
:KUBE-XLB-ABC - [0:0]
:KUBE-SVC-ABC - [0:0]
:KUBE-PORTALS-CONTAINER - [0:0]
:KUBE-PORTALS-HOST - [0:0]
:KUBE-NODEPORT-CONTAINER - [0:0]
:KUBE-NODEPORT-HOST - [0:0]
-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000
-A KUBE-XLB-ABC -j KUBE-SVC-ABC
-A KUBE-XLB-ABC -j KUBE-MARK-DROP
-A PREROUTING -m comment --comment "handle ClusterIPs; NOTE: this must be before the NodePort rules" -j KUBE-PORTALS-CONTAINER
-A PREROUTING -m addrtype --dst-type LOCAL -j KUBE-NODEPORT-CONTAINER
-A OUTPUT -j KUBE-PORTALS-HOST
-A OUTPUT -m addrtype --dst-type LOCAL -j KUBE-NODEPORT-HOST
COMMIT
*filter
:KUBE-NODEPORT-NON-LOCAL - [0:0]
:KUBE-IPVS-FILTER - [0:0]
-A INPUT -j KUBE-NODEPORT-NON-LOCAL
-A INPUT -m comment --comment "kubernetes ipvs access filter" -j KUBE-IPVS-FILTER
COMMIT
`
    expect(cleaned(applyScript(empty, old))).toEqual(empty)
  })

  it('leaves the rules of users, and keeps a chain that they use', () => {
    const used = `*nat
:CNI-DN - [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-SERVICES - [0:0]
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A CNI-DN -j KUBE-MARK-MASQ
-A PREROUTING -j CNI-DN
-A PREROUTING -j KUBE-SERVICES
COMMIT
`
    const tables = applyScript(empty, used)
    expect(planCleanup(tables).kept).toEqual(['nat KUBE-MARK-MASQ'])
    const nat = cleaned(tables).get('nat')!
    expect(nat.get('CNI-DN')).toEqual(['-j KUBE-MARK-MASQ'])
    expect(nat.get('PREROUTING')).toEqual(['-j CNI-DN'])
    expect(nat.has('KUBE-SERVICES')).toBe(false)
  })

  it('has nothing to do on a machine that never had a proxy', () => {
    expect(planCleanup(empty)).toEqual({ ops: [], kept: [] })
  })
})
