// The whole node: what concerns all Services first, then every Service, as far as it can be seen without dialling.

import { type Family, parseIp } from '../lib/ip.ts'
import { examine, examineMachine, isOfProxy, type NodeDiagnosis } from './examine.ts'
import type { NodeFacts } from './facts.ts'
import { packetTo, readForeign, readMachine } from './read-machine.ts'
import { readFacts, type ToExamine, withPods } from './read-facts.ts'

export interface NodeToExamine extends Pick<ToExamine, 'proxy' | 'known' | 'objects'> {
  readonly drift: NodeFacts['drift']
}

/** More are not looked at: each takes a walk through the kernel's rules. */
const MOST_SERVICES = 1000

export async function examineNode({ proxy, known, objects, drift }: NodeToExamine): Promise<NodeDiagnosis> {
  const family: Family = known?.nodes[4] === undefined && known?.nodes[6] !== undefined ? 6 : 4
  const node = proxy.kind === 'answers' ? proxy.node : 'this node'
  const machine = readMachine(family)
  const foreign = known === undefined ? [] : await readForeign(family, packetsThrough(family, known))
  const ofNode = { node, ...examineMachine({ proxy, machine, foreign, drift }) }
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
      known: whole,
      objects,
      isHere: true,
      states,
      dials: false,
    }
    const { finding } = examine(await readFacts(question))
    if (finding !== null && isOfProxy(finding)) services.push({ service, finding })
  }
  return { ...ofNode, services, count: names.length, looked: asked.length }
}

/** To one endpoint of each of some Services, from this node and from elsewhere: what drops all of them shows. */
function packetsThrough(family: Family, { slices, nodes }: NonNullable<ToExamine['known']>) {
  const nodeIp = nodes[family]?.nodeIp
  if (nodeIp === undefined) return []
  const clients = [
    { source: nodeIp, inputInterface: undefined },
    { source: family === 4 ? '203.0.113.7' : '2001:db8:ffff::7', inputInterface: 'eth0' },
  ]
  const places = slices
    .filter(({ addressType }) => addressType === `IPv${family}`)
    .slice(0, 100)
    .flatMap(({ endpoints, ports }) => {
      const [endpoint] = endpoints.filter(({ ready, address }) => ready && parseIp(address) !== undefined)
      const [port] = ports.filter((each) => each.protocol === 'TCP' && each.port !== undefined)
      return endpoint === undefined || port === undefined ? [] : [{ address: endpoint.address, port: port.port! }]
    })
  return places.flatMap(({ address, port }) => clients.map((client) => packetTo(address, port, client)))
}
