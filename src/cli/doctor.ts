// `kube-proxy doctor`.

import { existsSync } from 'node:fs'
import { couldNotLook, examine } from '../diagnose/doctor/examine.ts'
import { examineNode } from '../diagnose/doctor/examine-node.ts'
import { formatDiagnosis, formatNodeDiagnosis } from '../diagnose/doctor/format.ts'
import { formatJson } from '../diagnose/format-json.ts'
import { findInstallation } from '../diagnose/doctor/installation.ts'
import { readFacts } from '../diagnose/doctor/read-facts.ts'
import { readProxy } from '../diagnose/doctor/read-proxy.ts'
import { paintFor } from '../diagnose/paint.ts'
import { readApi } from '../diagnose/doctor/read-api.ts'
import { parseTarget } from '../diagnose/explain/target.ts'
import { UsageError } from '../lib/command.ts'
import { textOf } from './parse-flags.ts'
import type { Question } from '../diagnose/explain/question.ts'

export interface DoctorOptions {
  readonly from: string
  readonly via: Question['via']
  readonly send: boolean
  readonly node: string | undefined
  readonly output: 'text' | 'json'
}

/** `open`: nothing was found, but not everything could be looked at. */
const exitStatus = { clean: 0, found: 2, open: 3 } as const

/** `service` is NAMESPACE/SERVICE[:PORT]; undefined: the whole node is examined. */
export async function runDoctorCommand(
  service: string | undefined,
  { from, via, send, node, output }: DoctorOptions,
  given: ReadonlyMap<string, unknown>,
): Promise<number> {
  const target = service === undefined ? undefined : serviceOf(service)
  const text = (name: string) => textOf(given, name)
  const { proxy, known, drift } =
    text('manifests') === '' ? await readProxy(text('control-socket')) : await readOther(node, given)
  const { objects, error: apiError } = await readApi(fileOf(text('kubeconfig')), text('master'))
  const paint = paintFor(process.stdout, process.env)
  const installation = findInstallation('node' in proxy ? proxy.node : undefined)
  const common = { proxy, installation, known, objects, apiError, socket: text('control-socket') }
  if (target === undefined) {
    const whole = await examineNode({ ...common, drift })
    process.stdout.write(output === 'json' ? formatJson({ version: 1, ...whole }) : formatNodeDiagnosis(whole, paint))
    return statusOf(whole.finding !== null || whole.services.length > 0, whole)
  }
  const diagnosis = examine(await readFacts({ ...common, ...target, from, via, sends: send }))
  process.stdout.write(output === 'json' ? formatJson({ version: 1, ...diagnosis }) : formatDiagnosis(diagnosis, paint))
  return statusOf(diagnosis.finding !== null, diagnosis)
}

/** Another kube-proxy on this machine: what it should do follows from the objects and the flags. */
async function readOther(
  node: string | undefined,
  given: ReadonlyMap<string, unknown>,
): Promise<Awaited<ReturnType<typeof readProxy>>> {
  const { readKnown } = await import('./explain-known.ts')
  const source = { node, dump: undefined, 'node-addresses': undefined, kernel: true }
  const { known } = await readKnown(source, given)
  const nodeName = (known.nodes[4] ?? known.nodes[6])?.nodeName ?? 'this node'
  return { proxy: { kind: 'other', mode: known.mode.name, node: nodeName }, known, drift: [] }
}

/** A file that is not there is a mistake of the user; an API server that does not answer is not. */
function fileOf(kubeconfig: string): string {
  if (kubeconfig !== '' && !existsSync(kubeconfig)) throw new UsageError(`--kubeconfig: there is no file ${kubeconfig}`)
  return kubeconfig
}

function serviceOf(text: string): { readonly service: string; readonly port: string } {
  const target = parseTarget(text)
  if (typeof target === 'string') throw new UsageError(target)
  if (target.service === undefined) throw new UsageError('doctor takes a Service, not an address')
  const { namespace, name } = target.service
  return { service: `${namespace}/${name}`, port: String(target.port ?? '') }
}

function statusOf(isFound: boolean, asked: Parameters<typeof couldNotLook>[0]): number {
  if (isFound) return exitStatus.found
  return couldNotLook(asked) ? exitStatus.open : exitStatus.clean
}
