// What only IPVS does.

import type { Service } from '../../kube/types.ts'
import { canonicalIp, joinHostPort } from '../../lib/ip.ts'
import { formatDuration } from '../../lib/duration.ts'
import { BALANCE_ANNOTATION, type Balance, balanceFor, BALANCES, isHash } from '../../model/balance.ts'
import { WITHOUT_LOCAL_ANNOTATION } from '../../model/without-local.ts'
import { keyOf, ofNode, ofServices, outerAddresses, someOf } from './change.ts'
import type { Change } from './change-kinds.ts'
import type { LeavingFacts } from './facts.ts'
import { severalBackends } from './several-backends.ts'
import { describeScheduler } from './schedulers.ts'

export function judgeIpvs(facts: LeavingFacts): Change[] {
  const { from, to, services } = facts
  return [
    ...judgeChoice(facts),
    ...judgePings(facts),
    ...judgeAddresses(facts),
    ...judgePolicies(services),
    ...judgeSettings(facts),
    ofNode('connections', {
      message: `IPVS carries the connections that are open now: they end when mode ${to.mode.name} takes over from ${from.mode.name}`,
      todo: 'drain the node first, or change the mode when it starts anyway',
    }),
  ]
}

/** External IPs answered, too; a program that pings one expects a machine there. */
function judgePings({ to, services }: LeavingFacts): Change[] {
  if (to.config.answerPing) return []
  return ofServices('ping', services, {
    message:
      'The addresses of a Service answered pings, and do not any more (newer kube-proxy has a chain KUBE-IPVS-FILTER, which refuses them)',
    todo: '--answer-ping (answerPing: true): cluster IPs and load-balancer IPs answer while there is an endpoint',
  })
}

function judgeChoice({ from, to, services }: LeavingFacts): Change[] {
  const scheduler = from.config.ipvs.scheduler || 'rr'
  const several = severalBackends(from)
  const { was, closest } = describeScheduler(scheduler)
  const isPossible = closest !== undefined && to.mode.balances.includes(closest)
  const balanced = services.filter((service) => several.has(keyOf(service)))
  return BALANCES.flatMap((balance) => {
    if (isPossible && balance === closest) return []
    const own = balanced.filter((service) => balanceOf(service, to) === balance)
    return ofServices('scheduler', own, {
      message: `Scheduler ${scheduler}: ${was}. Mode ${to.mode.name} chooses ${HOW[balance]}`,
      todo: isPossible
        ? `--balance=${closest} (balance: ${closest}) for all Services, or the annotation ${BALANCE_ANNOTATION}=${closest}: docs/guides/balancing.md`
        : 'stay in ipvs mode, which this program keeps: --proxy-mode=ipvs',
    })
  })
}

const HOW: Readonly<Record<Balance, string>> = {
  random: 'at random',
  'hash-client': "by a hash of the client's address",
  'hash-connection': "by a hash of the client's address and port",
  'least-connections': 'by open connections',
}

/** How the new mode chooses for a Service. */
function balanceOf({ annotations }: Service, { mode, config }: LeavingFacts['to']): Balance {
  const asked = BALANCES.find((each) => each === annotations?.[BALANCE_ANNOTATION])
  return balanceFor(asked, { node: config.balance as Balance, able: mode.balances })
}

function judgeAddresses({ from, services, machine, machineAddresses }: LeavingFacts): Change[] {
  const own = new Set(machineAddresses)
  const { strictARP } = from.config.ipvs
  const outer = services.filter((service) => outerAddresses(service).some((address) => !own.has(address)))
  const owners = new Map<string, Service>()
  for (const service of services) {
    for (const text of [...service.clusterIPs, ...outerAddresses(service)]) {
      const address = canonicalIp(text)
      if (address !== undefined && !own.has(address)) owners.set(address, service)
    }
  }
  const bound = machine.bound.filter(({ address }) => owners.has(address))
  const arp = strictARP ? '' : ', and the node answers no ARP or neighbour request for them'
  return [
    ...ofServices('bound-program', [...new Set(bound.map(({ address }) => owners.get(address)!))], {
      message: `Programs of this node listen on addresses that it has on kube-ipvs0 alone: ${someOf(bound.map(({ address, port, protocol }) => `${joinHostPort(address, port)}/${protocol}`))}. They cannot be reached there any more, and a restart cannot bind them`,
      todo: 'let them listen on an address of the node, or give the address to a dummy link of your own',
    }),
    ...ofServices('link-addresses', outer, {
      message: `External and load-balancer IPs are not addresses of this node any more: a routing daemon that announces those of kube-ipvs0 withdraws them${arp}`,
      todo: 'announce the addresses by a load balancer that reads Services (MetalLB, kube-vip, Cilium, a BGP speaker with static routes)',
    }),
    ...(strictARP
      ? [
          ofNode('strict-arp', {
            message: `Without these addresses, ipvs.strictARP is not needed. net.ipv4.conf.all.arp_ignore=1 and arp_announce=2 stay until they are set back or the node restarts`,
          }),
        ]
      : []),
  ]
}

function judgePolicies(services: readonly Service[]): Change[] {
  const local = services.filter(
    ({ externalTrafficPolicy, annotations }) =>
      externalTrafficPolicy === 'Local' && annotations?.[WITHOUT_LOCAL_ANNOTATION] === undefined,
  )
  const affine = services.filter(({ sessionAffinity }) => sessionAffinity === 'ClientIP')
  return [
    ...ofServices('local-policy', local, {
      message:
        "externalTrafficPolicy Local: without a local endpoint, kube-proxy's ipvs mode sends clients from outside to other nodes; here they are dropped, so that load balancers go elsewhere. With one, it keeps pods and the node to local endpoints; here they reach all. (So it is in the ipvs mode of this program.)",
      todo: `the annotation ${WITHOUT_LOCAL_ANNOTATION}=use-others sends clients to other nodes; =drop, to keep it as it is here: docs/guides/without-local-endpoints.md`,
    }),
    ...ofServices('affinity', affine, {
      message:
        'Session affinity belonged to one address and port; now a client has the same endpoint through every address of a service port, and a new one as soon as the timeout is over (IPVS looks once a minute). Present affinity is forgotten',
    }),
  ]
}

function judgeSettings({ from, to, machine }: LeavingFacts): Change[] {
  const { excludeCIDRs, tcpTimeoutMs, tcpFinTimeoutMs, udpTimeoutMs } = from.config.ipvs
  const { tcpEstablishedTimeoutMs } = to.config.conntrack
  const timeouts = { tcpTimeout: tcpTimeoutMs, tcpFinTimeout: tcpFinTimeoutMs, udpTimeout: udpTimeoutMs }
  const set = Object.entries(timeouts).flatMap(([name, ms]) => (ms > 0 ? [`ipvs.${name} ${formatDuration(ms)}`] : []))
  const instead =
    'conntrack.tcpEstablishedTimeout, conntrack.udpTimeout and conntrack.udpStreamTimeout are those that count'
  const message =
    set.length > 0
      ? `${set.join(', ')}: without effect. Connection tracking forgets idle TCP connections after ${formatDuration(tcpEstablishedTimeoutMs)}`
      : `IPVS forgot idle TCP connections after 15 minutes, and UDP flows after 5, unless ipvsadm --set changed that. Connection tracking forgets TCP after ${formatDuration(tcpEstablishedTimeoutMs)}, and UDP by its own timeouts, 2 minutes at most by default: a client that is silent for longer may get another endpoint`
  return [
    ofNode(set.length > 0 ? 'timeouts' : 'idle-connections', { message, todo: instead }),
    ...(excludeCIDRs.length === 0
      ? []
      : [
          ofNode('exclude-cidrs', {
            message: `ipvs.excludeCIDRs ${someOf(excludeCIDRs)}: without effect. The virtual servers in these ranges stay in the kernel, and the proxy never looks at them again`,
          }),
        ]),
    ...(machine.sloppyTcp && !isHash(to.config.balance as Balance)
      ? [
          ofNode('sloppy-tcp', {
            message:
              'net.ipv4.vs.sloppy_tcp is on: IPVS took up connections in their middle, as a router with ECMP moves them between nodes. Connection tracking does, too (net.netfilter.nf_conntrack_tcp_loose), but sends them to an endpoint that is chosen at random',
            ...(to.mode.balances.includes('hash-connection') && {
              todo: '--balance=hash-connection (balance: hash-connection): nodes with the same endpoints choose the same one for a connection',
            }),
          }),
        ]
      : []),
  ]
}
