// `kube-proxy flows`: the connections through the services of this node, as they begin and end.

import { setTimeout as sleep } from 'node:timers/promises'
import { parseTarget } from '../diagnose/explain/target.ts'
import { formatFlowLine } from '../flows/flow-record.ts'
import { UsageError } from '../lib/command.ts'
import type { FlowsAnswer } from '../serve/control/flows.ts'
import { formatFlow } from './flows-view.ts'
import { openEndableClient } from './endable-client.ts'

export interface FlowsOptions {
  readonly count: number | undefined
  readonly 'control-socket': string | undefined
  readonly output: 'text' | 'json'
}

/** Between two questions: the answer has what came meanwhile. */
const PAUSE_MS = 200
const WAIT_MS = 5000

/** `service` is [NAMESPACE/]SERVICE; undefined: all. */
export async function runFlowsCommand(service: string | undefined, options: FlowsOptions): Promise<number> {
  const { output, count = Infinity } = options
  const query = service === undefined ? {} : { service: serviceNamed(service) }
  const { client, ended } = openEndableClient(options['control-socket'])
  const ask = (more: Record<string, string>) => client.ask<FlowsAnswer>('flows', { query: { ...query, ...more } })
  try {
    let answer = await ask({})
    const notes = new Notes(answer)
    let printed = 0
    while (!ended.signal.aborted) {
      answer = await ask({ after: String(answer.last), wait: String(WAIT_MS) })
      const { flows, nodeName } = answer
      for (const flow of flows.slice(0, count - printed)) {
        const { number: _, ...record } = flow
        process.stdout.write(`${output === 'json' ? formatFlowLine(record, nodeName) : formatFlow(record)}\n`)
      }
      notes.add(answer)
      printed += flows.length
      if (printed >= count) break
      await sleep(PAUSE_MS, undefined, { signal: ended.signal }).catch(() => {})
    }
  } catch (error) {
    if (!ended.signal.aborted) throw error
  } finally {
    client.close()
  }
  return 0
}

/** What is not in the lines goes to stderr, once each. */
class Notes {
  readonly #printed = new Set<string>()
  #leftOut: number

  constructor(first: FlowsAnswer) {
    this.#leftOut = first.leftOut
    process.stderr.write(`kube-proxy: connections on ${first.nodeName}, ${first.mode} mode; end with Ctrl-C\n`)
    this.add(first)
  }

  add({ lacks, leftOut, missed }: FlowsAnswer): void {
    for (const lack of lacks) {
      if (this.#printed.has(lack)) continue
      this.#printed.add(lack)
      process.stderr.write(`kube-proxy: ${lack}\n`)
    }
    const more = leftOut - this.#leftOut
    this.#leftOut = leftOut
    if (more > 0) process.stderr.write(`kube-proxy: ${more} connections left out: there were too many\n`)
    if (missed > 0) process.stderr.write(`kube-proxy: ${missed} lines left out: this command was too slow\n`)
  }
}

function serviceNamed(text: string): string {
  const target = parseTarget(text)
  if (typeof target === 'string') throw new UsageError(target)
  if (target.service === undefined) throw new UsageError('flows takes a Service, not an address')
  if (target.port !== undefined) throw new UsageError('flows takes a Service without a port')
  const { namespace, name } = target.service
  return `${namespace}/${name}`
}
