// Inspects a node from inside its network namespace: its proxy's decisions, its kernel, the way of a packet.

import { ask } from '../serve/control/client.ts'
import type { StateAnswer } from '../serve/control/state.ts'
import { examine } from '../diagnose/doctor/examine.ts'
import { examineNode } from '../diagnose/doctor/examine-node.ts'
import { findInstallation } from '../diagnose/doctor/installation.ts'
import { readFacts } from '../diagnose/doctor/read-facts.ts'
import { readProxy } from '../diagnose/doctor/read-proxy.ts'
import { explain, prepare, type KernelState } from '../diagnose/explain/explain.ts'
import type { Explanation } from '../diagnose/explain/explanation.ts'
import { formatSvg } from '../diagnose/explain/format-svg.ts'
import { knownFromState } from '../diagnose/explain/from-state.ts'
import type { Known, KnownPod } from '../diagnose/explain/known.ts'
import type { ReadObjects } from '../diagnose/explain/read-known.ts'
import type { Service } from '../kube/types.ts'
import { readKernelFor, readKernelState } from '../diagnose/explain/read-kernel.ts'
import { departFrom } from '../diagnose/explain/networks.ts'
import { sendPacket, type Departure } from '../diagnose/explain/send.ts'
import type { Family } from '../lib/ip.ts'
import { modeNamed } from '../modes/all.ts'
import type { DoctorAnswer, ExplainQuestion, ServiceDetail } from './protocol.ts'
import { planServiceDetail } from './service-detail.ts'

/** What the client knows, and the node's proxy does not. */
export interface InspectorContext {
  /** The control socket of the node's proxy. */
  readonly socket: string
  readonly pods: readonly KnownPod[]
  readonly otherNodes: Known['otherNodes']
}

export type InspectorQuestion =
  | { readonly kind: 'service'; readonly namespace: string; readonly name: string; readonly context: InspectorContext }
  | {
      readonly kind: 'explain'
      readonly question: ExplainQuestion
      readonly context: InspectorContext
      /** The network namespace from which a real packet is sent; absent: the node's. */
      readonly clientNetns?: string | undefined
    }
  | {
      readonly kind: 'doctor'
      readonly service: string | undefined
      readonly from: string
      readonly context: InspectorContext
      readonly cluster: KnownCluster | null
    }

/** What the API knows of the cluster, and the proxy does not. */
export interface KnownCluster {
  readonly server: string
  readonly services: readonly Service[]
  readonly raw: ReadObjects['raw']
}

export interface InspectorExplanation {
  readonly explanation: Explanation
  readonly svg: string
}

export type InspectorAnswer<Q extends InspectorQuestion> = Q extends { kind: 'service' }
  ? ServiceDetail
  : Q extends { kind: 'doctor' }
    ? InspectorDiagnosis
    : InspectorExplanation

export type InspectorDiagnosis = Omit<DoctorAnswer, 'node' | 'command'>

export async function inspectNode<Q extends InspectorQuestion>(question: Q): Promise<InspectorAnswer<Q>>
export async function inspectNode(
  question: InspectorQuestion,
): Promise<ServiceDetail | InspectorExplanation | InspectorDiagnosis> {
  if (question.kind === 'doctor') return examineHere(question)
  const known = await readKnown(question.context)
  if (question.kind === 'service') return describeService(known, question)
  const { clientNetns } = question
  const departure = clientNetns === undefined ? undefined : departFrom(clientNetns)
  return explainPacket(known, question, departure)
}

async function readKnown({ socket, pods, otherNodes }: InspectorContext): Promise<Known> {
  const known = knownFromState(await ask<StateAnswer>('state', { socket, query: { only: 'objects' } }), modeNamed)
  return { ...known, pods, otherNodes }
}

async function describeService(
  known: Known,
  question: { readonly namespace: string; readonly name: string },
): Promise<ServiceDetail> {
  const kernels = new Map<Family, KernelState>()
  for (const family of [4, 6] as const) {
    if (known.nodes[family] !== undefined) kernels.set(family, await readKernelState(known.mode.name, family))
  }
  return planServiceDetail(known, question, kernels)
}

async function explainPacket(
  known: Known,
  { question: { from, to, via, family, send }, context }: { question: ExplainQuestion; context: InspectorContext },
  departure: Departure | undefined,
): Promise<InspectorExplanation> {
  const prepared = prepare(known, { from, to, via, family })
  const state = await readKernelFor(prepared, context.socket)
  const sent = send === true ? await sendPacket(prepared, { departure, state }) : undefined
  const explanation = explain(prepared, state, sent)
  return { explanation, svg: formatSvg(explanation) }
}

async function examineHere({
  service,
  from,
  context,
  cluster,
}: InspectorQuestion & { kind: 'doctor' }): Promise<InspectorDiagnosis> {
  const { proxy, known, drift } = await readProxy(context.socket)
  const { pods, otherNodes, socket: _ } = context
  const installation = findInstallation(proxy.kind === 'answers' ? proxy.node : undefined)
  const objects =
    cluster === null ? undefined : { ...cluster, pods, slices: known?.slices ?? [], nodes: [], serviceCidrs: [] }
  const common = { proxy, installation, objects, known: known && { ...known, pods, otherNodes } }
  if (service === undefined) {
    const { answers, finding, services } = await examineNode({ ...common, drift })
    return { answers, finding, services }
  }
  const { answers, finding } = examine(await readFacts({ ...common, service, port: '', from }))
  return { answers, finding, services: [] }
}
