// Whose rules they are, by the names that programs give to their tables and chains.

export interface Owner {
  readonly name: string
  readonly kind: 'firewall' | 'network policy' | 'network plugin' | 'proxy'
}

const firewall = (name: string): Owner => ({ name, kind: 'firewall' })
const policy = (name: string): Owner => ({ name, kind: 'network policy' })
const plugin = (name: string): Owner => ({ name, kind: 'network plugin' })

/** Against the table's name, without its family, and the chain's. The first that fits. */
const KNOWN: readonly (readonly [table: RegExp | undefined, chain: RegExp | undefined, owner: Owner])[] = [
  [undefined, /^cali-/, policy('Calico')],
  [/^calico/, undefined, policy('Calico')],
  [undefined, /^KUBE-(ROUTER|NWPLCY|POD-FW)-/, policy('kube-router')],
  [undefined, /^KUBE-(FIREWALL|KUBELET)/, firewall('the kubelet')],
  [undefined, /^KUBE-/, { name: 'another kube-proxy', kind: 'proxy' }],
  [/^(kube-network-policies|kindnet-network-policies)/, undefined, policy('kube-network-policies')],
  [undefined, /^ANTREA-/, policy('Antrea')],
  [/^antrea/, undefined, policy('Antrea')],
  [undefined, /^WEAVE-NPC/, policy('Weave Net')],
  [undefined, /^(OLD_)?CILIUM_/, plugin('Cilium')],
  [undefined, /^FLANNEL-/, plugin('flannel')],
  [/^flannel/, undefined, plugin('flannel')],
  [undefined, /^CNI-/, plugin('the portmap plugin of CNI')],
  [undefined, /^DOCKER/, firewall('Docker')],
  [/^docker/, undefined, firewall('Docker')],
  [undefined, /^NETAVARK/, firewall('Podman (netavark)')],
  [/^netavark/, undefined, firewall('Podman (netavark)')],
  [undefined, /^LIBVIRT_/, firewall('libvirt')],
  [/^libvirt/, undefined, firewall('libvirt')],
  [undefined, /^ufw6?-/, firewall('ufw')],
  [/^firewalld/, undefined, firewall('firewalld')],
  [
    undefined,
    /^(IN|FWDI?|FWDO|FORWARD|INPUT)_(public|trusted|block|drop|dmz|work|home|internal|external|ZONES|direct)/,
    firewall('firewalld'),
  ],
  [/^f2b/, undefined, firewall('fail2ban')],
  [undefined, /^f2b-/, firewall('fail2ban')],
]

/** `inet firewalld`, `filter of iptables-nft` */
export function ownerOf(listed: string, chain: string): Owner | undefined {
  const table = listed.replace(/^\S+ /, '')
  return KNOWN.find(([ofTable, ofChain]) => ofTable?.test(table) === true || ofChain?.test(chain) === true)?.[2]
}
