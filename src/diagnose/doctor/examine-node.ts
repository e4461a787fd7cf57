// The whole node: what concerns all Services first, then every Service, as far as it can be seen without dialling.

import { type Family, ipFamily, parseIp, ipBytes } from '../../lib/ip.ts'
import { findWays } from '../../links/find-ways.ts'
import { examine, examineMachine, isOfProxy, type NodeDiagnosis } from './examine.ts'
import type { NodeExamination } from './facts.ts'
import { packetTo, readForeign, readMachine } from './read-machine.ts'
import { readFacts, type ToExamine, withPods } from './read-facts.ts'

export interface NodeToExamine extends Pick<ToExamine, 'proxy' | 'installation' | 'known' | 'objects'> {
  readonly drift: NodeExamination['drift']
}

/** More are not looked at: each takes a walk through the kernel's rules. */
const MOST_SERVICES = 1000

export async function examineNode({
  proxy,
  installation,
  known,
  objects,
  drift,
}: NodeToExamine): Promise<NodeDiagnosis> {
  const family: Family = known?.nodes[4] === undefined && known?.nodes[6] !== undefined ? 6 : 4
  const node = proxy.kind === 'answers' ? proxy.node : 'this node'
  const machine = readMachine(family)
  const foreign = known === undefined ? undefined : await readForeign(family, packetsThrough(family, known))
  const ofNode = { node, ...examineMachine({ proxy, installation, machine, foreign, drift }) }
  const whole = withPods({ known, objects })
  if (ofNode.finding !== null || whole === undefined) return { ...ofNode, services: [], count: 0, looked: 0 }
  const names = whole.services.map(({ namespace, name }) => `${namespace}/${name}`).sort()
  const asked = names.slice(0, MOST_SERVICES)
  const services: NodeDiagnosis['services'][number][] = []
  const states: NonNullable<ToExamine['states']> = new Map()
  for (const service of asked) {
    const question = {
      service,
      port: '',
      from: 'node',
      proxy,
      installation,
      known: whole,
      objects,
      states,
      dials: false,
    }
    const { finding } = examine(await readFacts(question))
    if (finding !== null && isOfProxy(finding)) services.push({ service, finding })
  }
  return { ...ofNode, services, count: names.length, looked: asked.length }
}

/** To one endpoint of each of some Services, from this node and from a pod of it: what drops all of them shows. */
function packetsThrough(family: Family, { slices, nodes, machineAddresses }: NonNullable<ToExamine['known']>) {
  const { nodeIp, nodeName } = nodes[family] ?? {}
  if (nodeIp === undefined) return []
  const places = slices
    .filter(({ addressType }) => addressType === `IPv${family}`)
    .slice(0, 100)
    .flatMap(({ endpoints, ports }) => {
      const [endpoint] = endpoints.filter(({ ready, address }) => ready && parseIp(address) !== undefined)
      const [port] = ports.filter((each) => each.protocol === 'TCP' && each.port !== undefined)
      return endpoint === undefined || port === undefined ? [] : [{ endpoint, port: port.port! }]
    })
  const pod = slices
    .flatMap(({ endpoints }) => endpoints)
    .find(({ nodeName: on, address }) => {
      return on === nodeName && ipFamily(address) === family && !machineAddresses.includes(address)
    })
  const [way] = pod === undefined ? [] : findWays([ipBytes(pod.address)])
  const clients = [
    { source: nodeIp, inputInterface: undefined },
    ...(pod !== undefined && way?.kind === 'link' ? [{ source: pod.address, inputInterface: way.link }] : []),
  ]
  return places.flatMap(({ endpoint: { address }, port }) =>
    clients
      .filter(({ source }) => source !== address)
      .map((client) => packetTo({ address, port, protocol: 'TCP', isUntranslated: false }, client)),
  )
}
