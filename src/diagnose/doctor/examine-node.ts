// The whole node: what concerns all Services first, then every Service, as far as it can be seen without dialling.

import { examine, examineMachine, isOfProxy, type NodeDiagnosis } from './examine.ts'
import type { NodeExamination } from './facts.ts'
import { packetsToServices } from './packets.ts'
import { readMachine } from './read-machine.ts'
import { familiesOf, readFacts, readForeignOf, readMachineOf, type ToExamine, withPods } from './read-facts.ts'

export interface NodeToExamine extends Pick<ToExamine, 'proxy' | 'installation' | 'known' | 'objects' | 'apiError'> {
  readonly drift: NodeExamination['drift']
}

/** More are not looked at: each takes a walk through the kernel's rules. */
const MOST_SERVICES = 1000

export async function examineNode({ drift, ...common }: NodeToExamine): Promise<NodeDiagnosis> {
  const { proxy, installation, known, objects, apiError } = common
  const node = 'node' in proxy ? proxy.node : 'this node'
  const machine = known === undefined ? readMachine([4]) : readMachineOf(known, familiesOf(known), [])
  const foreign = known && (await readForeignOf(known, (family) => ({ packets: packetsToServices(known, family) })))
  const ofNode = { node, ...examineMachine({ proxy, installation, apiError, machine, foreign, drift }) }
  const whole = withPods({ known, objects })
  if (ofNode.finding !== null || whole === undefined) return { ...ofNode, services: [], count: 0, looked: 0 }
  const names = whole.services.map(({ namespace, name }) => `${namespace}/${name}`).sort()
  const asked = names.slice(0, MOST_SERVICES)
  const services: NodeDiagnosis['services'][number][] = []
  const states: NonNullable<ToExamine['states']> = new Map()
  for (const service of asked) {
    const question = { service, port: '', from: 'node', known: whole, states, dials: false }
    const { finding } = examine(await readFacts({ ...common, ...question }))
    if (finding !== null && isOfProxy(finding)) services.push({ service, finding })
  }
  return { ...ofNode, services, count: names.length, looked: asked.length }
}
