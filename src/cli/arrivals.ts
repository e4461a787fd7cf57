// `kube-proxy arrivals`: what the plugin of kubectl asks of the node of a pod, while another node sends.

import { awaitArrival } from '../diagnose/explain/arrivals.ts'
import { parseTarget } from '../diagnose/explain/target.ts'
import { UsageError } from '../lib/command.ts'
import { ipFamily } from '../lib/ip.ts'

/** Says when it is ready, and then what came, each as one line of JSON. */
export async function runArrivalsCommand([endpoint = '', seconds = '10']: readonly string[]): Promise<number> {
  const target = parseTarget(endpoint)
  const patienceMs = Number(seconds) * 1000
  const mistake = new UsageError('arrivals takes ADDRESS:PORT[/PROTOCOL] and a number of seconds')
  if (typeof target === 'string' || !(patienceMs > 0)) throw mistake
  const { address: destination, port: destinationPort, protocol = 'TCP' } = target
  if (destination === undefined || typeof destinationPort !== 'number' || protocol === 'ICMP') throw mistake
  const flow = { family: ipFamily(destination)!, protocol, destination, destinationPort }
  const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`)
  const onReady = () => void say({ isReady: true })
  say(await awaitArrival(flow, { patienceMs, onReady }))
  return 0
}
