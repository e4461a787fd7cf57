// What the Services of a cluster and a node lose, gain, or do differently in another mode: pure.

import { blockOf } from '../../config/modes.ts'
import { ipBytes, isLinkLocal, isLoopback } from '../../lib/ip.ts'
import { LOCALHOST } from '../../model/node-port-addresses.ts'
import type { Decided } from '../explain/known.ts'
import { ofNode, ofServices, outerAddresses, someOf } from './change.ts'
import type { Change } from './change-kinds.ts'
import type { LeavingFacts, Side } from './facts.ts'
import { judgeIpvs } from './judge-ipvs.ts'

export function judgeLeaving(facts: LeavingFacts): Change[] {
  const { lacks } = facts.machine
  const { from, to } = facts
  return [
    ...(lacks.length === 0
      ? []
      : [ofNode('cannot-run', { message: `Mode ${to.mode.name} cannot run here: ${lacks.join('; ')}` })]),
    ...(from.mode.name === 'ipvs' ? judgeIpvs(facts) : []),
    ...judgeNodePorts(facts),
    ...judgeSemantics(facts),
    ...judgeRules(facts),
    ...judgeSettings(facts),
  ]
}

function judgeNodePorts(facts: LeavingFacts): Change[] {
  const { from, to } = facts
  const concerned = facts.services.filter(({ ports }) => ports.some(({ nodePort }) => nodePort !== 0))
  const [before, after] = [openAddresses(facts, from), openAddresses(facts, to)]
  const closed = before.filter((address) => !after.includes(address))
  const why = `nodePortAddresses is ${addressesOf(from)} in mode ${from.mode.name}, ${addressesOf(to)} in mode ${to.mode.name}`
  return [
    ...(closed.length === 0
      ? []
      : ofServices('node-port-addresses', concerned, {
          message: `Node ports close on ${someOf(closed)}: ${why}`,
          todo: '--nodeport-addresses=all (nodePortAddresses: [all]) opens them on every address, or name the ones that you need',
        })),
    ...(opensLocalhost(from) && !opensLocalhost(to)
      ? ofServices('localhost-node-ports', concerned, {
          message: 'Node ports close on 127.0.0.1, where only programs of this node reach them',
          todo: '--feature-gates=KubeProxyNFTablesLocalhostNodePorts=true --nodeport-addresses=primary,localhost: the proxy listens there, for TCP and UDP, also on ::1',
        })
      : []),
  ]
}

const addressesOf = ({ config }: Side) =>
  config.nodePortAddresses.length === 0 ? 'all' : config.nodePortAddresses.join(', ')

/** The addresses of this node at which someone else can dial a node port. */
function openAddresses({ machineAddresses }: LeavingFacts, { families }: Side): string[] {
  const decided = Object.values(families).filter(({ index }) => hasNodePorts(index))
  return machineAddresses.filter((address) => {
    const bytes = ipBytes(address)
    if (isLoopback(bytes) || isLinkLocal(bytes)) return false
    return decided.some(({ index }) => index.isNodePortAddress(address))
  })
}

function hasNodePorts(index: Decided['index']): boolean {
  for (const { frontend } of index.all()) if (frontend.kind === 'nodePort') return true
  return false
}

function opensLocalhost({ families }: Side): boolean {
  return families[4]?.index.isNodePortAddress(LOCALHOST[4]) === true
}

/** What follows from the descriptors of the two modes. */
function judgeSemantics({ from, to, services }: LeavingFacts): Change[] {
  const [before, after] = [from.mode.semantics, to.mode.semantics]
  const changes: Change[] = []
  if (before.guards === 'all addresses' && after.guards !== 'all addresses') {
    const outer = services.filter((service) => outerAddresses(service).length > 0)
    const message =
      'A connection to an external or load-balancer IP, and a port that the Service does not have, was refused; now it goes where the routes lead'
    changes.push(...ofServices('other-ports', outer, { message }))
  }
  if (before.guards === 'no addresses' && after.guards !== 'no addresses') {
    const message =
      'A connection to a cluster IP, and a port that the Service does not have, went where the routes lead; now it is refused at once'
    changes.push(ofNode('other-ports-refused', { message }))
  }
  if (before.unallocated !== after.unallocated) {
    const does = { drop: 'dropped', untouched: 'left to the routes' }
    const message = `A packet to an address of the service ranges that no Service has was ${does[before.unallocated]}, and is ${does[after.unallocated]}`
    changes.push(ofNode('unallocated', { message }))
  }
  if (before.sourceRanges !== after.sourceRanges) {
    const ranged = services.filter(({ loadBalancerSourceRanges }) => loadBalancerSourceRanges.length > 0)
    const when = { first: 'always', 'with endpoints': 'only while the Service has endpoints' }
    const message = `loadBalancerSourceRanges held ${when[before.sourceRanges]}, and hold ${when[after.sourceRanges]}: without endpoints, clients outside of them are dropped while they hold, and refused otherwise. They hold for node ports in no mode`
    changes.push(...ofServices('source-ranges', ranged, { message }))
  }
  return changes
}

/** What other programs see of the rules. */
function judgeRules({ from, to }: LeavingFacts): Change[] {
  const changes = [
    ofNode('rule-names', {
      message: `In the kernel, ${RULES[from.mode.name]} go, and ${RULES[to.mode.name]} come: what reads or extends the old ones finds nothing`,
      todo: 'explain, doctor, top and flows read every mode, and so do the metrics of each Service: docs/guides/top.md',
    }),
  ]
  if (to.mode.name !== 'nftables') return changes
  changes.push(
    ofNode('host-firewall', {
      message:
        "kube-proxy's iptables and ipvs modes accept forwarded traffic of Services, and health check node ports, ahead of other rules of iptables. In nftables no table can accept for another: a firewall of the host decides alone",
      todo: 'let it accept forwarded traffic from and to pods, and what arrives at node ports and health check node ports',
    }),
  )
  if (from.mode.name === 'iptables' && !from.config.conntrack.tcpBeLiberal && !to.config.conntrack.tcpBeLiberal)
    changes.push(
      ofNode('invalid-packets', {
        message:
          'Forwarded packets that connection tracking calls invalid were dropped, and are not: the receiver of one that comes late, out of the window, may reset its connection',
        todo: '--conntrack-tcp-be-liberal (conntrack.tcpBeLiberal: true)',
      }),
    )
  return changes
}

/** By mode: what others see of it. */
const RULES: Readonly<Record<string, string>> = {
  ipvs: 'the virtual servers, the link kube-ipvs0 and the ipsets KUBE-*',
  iptables: 'the chains KUBE-* of iptables',
  nftables: 'the tables `kube-proxy` of nftables',
}

/** Settings that have a block for each mode in the file. */
function judgeSettings({ from, to, hasFile }: LeavingFacts): Change[] {
  const [before, after] = [blockOf(from.mode.name), blockOf(to.mode.name)]
  const given: string[] = []
  const { config } = from
  if (before.masquerade !== after.masquerade) {
    // The flag is for every mode.
    if (config.masqueradeAll && hasFile) given.push('masqueradeAll')
    const bit = config[before.masquerade].masqueradeBit
    if (bit !== config[after.masquerade].masqueradeBit) given.push(`masqueradeBit (${bit})`)
  }
  if (given.length === 0) return []
  return [
    ofNode('settings', {
      message: `${given.join(' and ')} of the block ${before.masquerade} of the configuration file has no effect in mode ${to.mode.name}`,
      todo: `write it in the block ${after.masquerade} of the file, too`,
    }),
  ]
}
