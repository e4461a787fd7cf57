// Which interface of a sandbox has an address? A cluster IP, in most modes: none.

import { openSync } from 'node:fs'
import { count } from '../../../../src/lib/count.ts'
import { canonicalIp } from '../../../../src/lib/ip.ts'
import { listAddresses } from '../../../../src/links/addresses.ts'
import { NetworkNamespace } from '../netns/network-namespace.ts'
import type { Sandbox } from '../sandbox.ts'
import { AskedWrongly } from '../../../../src/ui/source.ts'

/** Searches the machine, every node and every pod; the answer is a sentence. */
export function findAddress({ network, pods }: Sandbox, text: string): string {
  const address = canonicalIp(text)
  if (address === undefined) throw new AskedWrongly(`Cannot look for ${JSON.stringify(text)}: must be an IP address`)
  const interfacesOf = (netns: NetworkNamespace) =>
    netns.enter(() => listAddresses().filter((each) => each.address === address)).map((each) => each.interfaceName)
  const { machine, nodes } = network
  const places = [
    { name: 'the machine outside', interfaces: interfacesOf(machine.netns) },
    ...nodes.map(({ plan, netns }) => ({ name: plan.name, interfaces: interfacesOf(netns) })),
  ]
  const podNames = pods.list().map(({ namespace, name }) => `${namespace}/${name}`)
  for (const name of podNames) {
    // One that went meanwhile has no interfaces.
    const [place] = pods.find(name)
    if (place === undefined) continue
    using netns = new NetworkNamespace(name, openSync(place.netns, 'r'))
    places.push({ name: `pod ${name}`, interfaces: interfacesOf(netns) })
  }
  const having = places.flatMap(({ name, interfaces }) => interfaces.map((each) => `${each} of ${name}`))
  if (having.length > 0) return `${having.join(', ')} ${having.length === 1 ? 'has' : 'have'} ${address}`
  const counted = `${count(nodes.length, 'node')} and ${count(podNames.length, 'pod')}`
  return `No interface of the machine outside, ${counted} has ${address}`
}
