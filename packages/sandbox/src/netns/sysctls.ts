// The settings of a namespace, so that packets behave by the sandbox's rules and not by those of the machine that it is on.

function settings(forwarding: 0 | 1): Readonly<Record<string, number>> {
  const values: Record<string, number> = { 'ipv4/ip_forward': forwarding }
  for (const which of ['all', 'default']) {
    Object.assign(values, {
      [`ipv4/conf/${which}/rp_filter`]: 0,
      // Pods of one node reach each other through the node; it must not send them redirects.
      [`ipv4/conf/${which}/send_redirects`]: 0,
      [`ipv4/conf/${which}/accept_redirects`]: 0,
      [`ipv6/conf/${which}/disable_ipv6`]: 0,
      // Addresses are usable at once.
      [`ipv6/conf/${which}/accept_dad`]: 0,
      [`ipv6/conf/${which}/accept_redirects`]: 0,
      [`ipv6/conf/${which}/accept_ra`]: 0,
      [`ipv6/conf/${which}/forwarding`]: forwarding,
    })
  }
  return {
    ...values,
    // Every connection to a service without endpoints is refused at once, however many there are.
    'ipv4/icmp_ratelimit': 0,
    'ipv4/icmp_msgs_per_sec': 1_000_000,
    'ipv4/icmp_msgs_burst': 1_000_000,
    'ipv6/icmp/ratelimit': 0,
    // Frames that a bridge forwards are not to be seen by the rules a second time.
    'bridge/bridge-nf-call-iptables': 0,
    'bridge/bridge-nf-call-ip6tables': 0,
    'bridge/bridge-nf-call-arptables': 0,
  }
}

export const routerSysctls: Readonly<Record<string, number>> = settings(1)
export const hostSysctls: Readonly<Record<string, number>> = settings(0)
