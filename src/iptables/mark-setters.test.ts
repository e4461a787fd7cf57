import { expect, test } from 'vitest'
import { markSetters } from './mark-setters.ts'

// iptables-save 1.8.11, beside the CNI plugin portmap and kube-router's policies.
const saved = `*mangle
:PREROUTING ACCEPT [0:0]
-A PREROUTING -i vpn0 -j MARK --set-xmark 0x2001/0xffffffff
-A PREROUTING -j CONNMARK --restore-mark --nfmask 0x2000 --ctmask 0x2000
COMMIT
*filter
-A KUBE-POD-FW-X -m comment --comment "set mark to ACCEPT traffic" -j MARK --set-xmark 0x20000/0x20000
-A KUBE-POD-FW-X -j MARK --set-xmark 0x0/0x30000
COMMIT
*nat
-A CNI-HOSTPORT-SETMARK -m comment --comment "CNI portfwd masquerade mark" -j MARK --set-xmark 0x2000/0x2000
-A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE
COMMIT
`

test('chains that set a bit are found, those that look at it or clear it are not', () => {
  expect(markSetters(saved, 0x2000)).toEqual(['PREROUTING of table mangle', 'CNI-HOSTPORT-SETMARK of table nat'])
  expect(markSetters(saved, 0x20000)).toEqual(['KUBE-POD-FW-X of table filter'])
  expect(markSetters(saved, 0x10000)).toEqual([])
  expect(markSetters(saved, 0x80000000)).toEqual([])
})
